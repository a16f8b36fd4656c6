"""Training of a run: loop, checkpoints, metrics, failures and signals."""
