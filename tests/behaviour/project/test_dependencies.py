"""pyproject.toml requires exactly the packages that the code imports."""

import ast
import importlib.metadata
import re
import sys

import pytest

from tests.support import command

_OWN = {"agents", "benchmarks", "configs"}


def _imported():
  """Returns the top-level modules that `agents` and `configs` import."""
  modules = set()
  for folder in "agents", "configs":
    for path in (command.ROOT / folder).rglob("*.py"):
      for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
          modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
          modules.add(node.module.partition(".")[0])
  return modules - _OWN - set(sys.stdlib_module_names)


def _names(requirements):
  names = {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements}
  return names - {"batched-ppo"}


def test_required_packages_are_imported_and_imported_packages_are_required():
  tomllib = pytest.importorskip("tomllib")
  project = tomllib.loads((command.ROOT / "pyproject.toml").read_text())["project"]
  required = _names(project["dependencies"])
  extras = _names(sum(project["optional-dependencies"].values(), []))
  distributions = importlib.metadata.packages_distributions()
  # Packages of extras that are not installed have no distribution here.
  imported = [
    {name.lower().replace("_", "-") for name in distributions[module]}
    for module in _imported()
    if module in distributions
  ]
  assert required <= set.union(*imported)
  assert all(names & (required | extras) for names in imported), imported
