"""Live page about running and finished runs, served on this machine."""
