"""Training of one run on several machines."""
