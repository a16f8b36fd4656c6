"""Measures how a learned policy withstands disturbances of its robot."""
