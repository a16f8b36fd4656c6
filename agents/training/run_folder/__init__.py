"""Files of a run: config, checkpoints and versions of its code."""
