"""A named config, with settings changed as `train.py --set` changes them."""

from __future__ import annotations

from collections.abc import Sequence

from agents import config as config_lib
from agents import configs


def load(name: str, settings: Sequence[str]) -> config_lib.Config:
  """Return a config by its name, or that of its file.

  Args:
    name: Of the config.
    settings: What to change, KEY=VALUE each.
  Raises:
    ConfigError: If there is no such config, key or value.
  """
  _, config = configs.load(name)
  return config.override(
      dict(config_lib.parse_setting(text) for text in settings))
