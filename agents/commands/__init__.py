"""What is typed on the command line: parse, build, run."""
