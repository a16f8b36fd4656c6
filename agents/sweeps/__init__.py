"""Searches for hyperparameters by training many runs."""
