"""Runs other libraries on the tasks of this project, for comparison."""
