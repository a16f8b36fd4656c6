"""The run around the algorithm: loop, checkpoints, metrics, signals."""
