"""Other libraries that do the work of this project, for comparison."""
