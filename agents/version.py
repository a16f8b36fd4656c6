"""Version of the distribution `batched-ppo`."""

__version__ = "0.2.0"
