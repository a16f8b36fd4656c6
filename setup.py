"""Packages of the distribution; pyproject.toml contains everything else."""

import setuptools

setuptools.setup(
  packages=[
    *setuptools.find_packages(include=["agents", "agents.*"]),
    "agents.configs",
    "agents.configs.presets",
    "agents.zoo.policies",
  ],
  # Wheels contain `configs/` as `agents/configs`, and `zoo/` as
  # `agents/zoo/policies`.
  package_dir={"agents.configs": "configs", "agents.zoo.policies": "zoo"},
)
