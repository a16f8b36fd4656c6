"""Checks of environments and of training, for the command `check`."""
