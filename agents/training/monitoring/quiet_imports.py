"""Suppresses the log messages that TensorFlow prints when it is imported."""

from agents.environments.data import tensorflow_log

quiet_imports = tensorflow_log.hidden
