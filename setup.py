"""Packages of the distribution; pyproject.toml contains everything else."""

import setuptools

setuptools.setup(
  packages=[
    *setuptools.find_packages(include=["agents", "agents.*"]),
    "agents.configs",
    "agents.configs.presets",
  ],
  # Wheels contain `configs/` as `agents/configs`.
  package_dir={"agents.configs": "configs"},
)
