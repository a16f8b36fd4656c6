"""Hyperparameter search by training many runs."""
