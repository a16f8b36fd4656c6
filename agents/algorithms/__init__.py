"""One algorithm a file, written to be read beside its paper."""
