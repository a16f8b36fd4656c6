"""Modules import only modules that the table of allowed imports lists."""

import ast
import functools
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[3]
_TENSORFLOW = {"tensorflow", "keras", "tf_keras", "tensorflow_probability"}

# Modules of the project that each layer may import, besides itself.
_ALLOWED_IMPORTS = {
  "agents": {"agents.former_names", "agents.version", "configs"},
  "agents.version": set(),
  "agents.former_names": set(),
  "agents.errors": set(),
  "agents.config_parsing": set(),
  "agents.class_loader": {"agents.config_parsing"},
  "agents.config": {"agents.config_parsing"},
  "agents.spaces": set(),
  "agents.types": set(),
  "agents.ops": {"agents.errors", "agents.spaces", "agents.types"},
  "agents.environments": {"agents.class_loader", "agents.config", "agents.errors", "agents.spaces"},
  "agents.robots": {
    "agents.config",
    "agents.config_parsing",
    "agents.environments",
    "agents.spaces",
  },
  "agents.robots.drive": {
    "agents.config",
    "agents.environments",
    "agents.errors",
    "agents.robots",
    "agents.training",
    "agents.translation",
    "agents.videos",
  },
  "agents.networks": {
    "agents.class_loader",
    "agents.config",
    "agents.config_parsing",
    "agents.ops",
    "agents.spaces",
    "agents.types",
  },
  "agents.translation": {"agents.config", "agents.spaces"},
  "agents.simulation": {
    "agents.algorithms.gradient_accumulation",
    "agents.environments",
    "agents.ops",
    "agents.spaces",
    "agents.translation",
    "agents.types",
  },
  "agents.algorithms": {
    "agents.config",
    "agents.networks",
    "agents.ops",
    "agents.simulation",
    "agents.types",
  },
  "agents.loggers": {"agents.class_loader", "agents.config"},
  "agents.training": {
    "agents.config",
    "agents.config_parsing",
    "agents.environments",
    "agents.errors",
    "agents.loggers",
    "agents.ops",
    "agents.simulation",
    "agents.spaces",
    "agents.types",
    "agents.videos",
  },
  "agents.distributed": {
    "agents.algorithms",
    "agents.build",
    "agents.config",
    "agents.environments",
    "agents.errors",
    "agents.ops",
    "agents.simulation",
    "agents.spaces",
    "agents.training",
    "agents.training_run",
    "agents.types",
  },
  "agents.training_run": {
    "agents.build",
    "agents.commands.parsing",
    "agents.config",
    "agents.environments",
    "agents.loggers",
    "agents.training",
    "agents.videos",
  },
  "agents.build": {
    "agents.algorithms",
    "agents.class_loader",
    "agents.config",
    "agents.environments",
    "agents.networks",
    "agents.ops",
    "agents.robots",
    "agents.simulation",
    "agents.spaces",
    "agents.training",
  },
  "agents.videos": {"agents.config", "agents.environments", "agents.errors"},
  "agents.export": {
    "agents.build",
    "agents.commands.shared.rollout_policy",
    "agents.config",
    "agents.environments",
    "agents.errors",
    "agents.networks",
    "agents.ops",
    "agents.simulation",
    "agents.spaces",
    "agents.training",
    "agents.translation",
    "agents.types",
    "agents.videos",
  },
  "agents.trained_policy": {"agents.environments", "agents.export", "agents.training"},
  "agents.reports": {"agents.config", "agents.training"},
  "agents.live_page": {"agents.config", "agents.training.run_folder"},
  "agents.stress": {
    "agents.commands.shared.rollout_policy",
    "agents.config",
    "agents.config_parsing",
    "agents.environments",
    "agents.errors",
    "agents.reports",
    "agents.training",
    "agents.videos",
  },
  "agents.sweeps": {
    "agents.config",
    "agents.config_parsing",
    "agents.environments",
    "agents.errors",
    "agents.reports",
    "agents.training",
  },
  "agents.zoo": {
    "agents.build",
    "agents.commands.shared.rollout_policy",
    "agents.config",
    "agents.config_parsing",
    "agents.configs",
    "agents.environments",
    "agents.export",
    "agents.training",
    "agents.translation",
    "agents.videos",
  },
  "agents.configs": {"agents.config", "agents.config_parsing"},
  "agents.configs.presets": {"agents.config", "agents.config_parsing"},
  "agents.commands": {
    "agents.build",
    "agents.config",
    "agents.configs",
    "agents.distributed",
    "agents.environments",
    "agents.errors",
    "agents.export",
    "agents.live_page",
    "agents.ops",
    "agents.reports",
    "agents.robots.drive",
    "agents.simulation",
    "agents.spaces",
    "agents.stress",
    "agents.sweeps",
    "agents.training",
    "agents.training_run",
    "agents.videos",
    "agents.zoo",
  },
  "agents.__main__": {"agents.commands", "agents.version"},
  "train": {"agents.commands"},
  "visualize": {"agents.commands"},
}


@functools.cache
def _sources() -> dict[str, pathlib.Path]:
  """Returns the file of every module of the project."""
  paths = [
    _ROOT / "train.py",
    _ROOT / "visualize.py",
    *_ROOT.glob("agents/**/*.py"),
    *_ROOT.glob("configs/**/*.py"),
  ]

  def name(path):
    parts = path.relative_to(_ROOT).with_suffix("").parts
    if parts[0] == "configs":  # Imports use the name `agents.configs`.
      parts = ("agents", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

  return {name(path): path for path in paths}


@functools.cache
def _tree(module: str) -> ast.Module:
  return ast.parse(_sources()[module].read_text())


@functools.cache
def _imports(module: str, at_start: bool = False) -> frozenset[str]:
  """Returns the modules and packages that a module imports.

  Args:
    module: Name of the module.
    at_start: Whether to exclude imports within functions.
  """
  nodes: list[ast.AST] = [_tree(module)]
  found: set[str] = set()
  while nodes:
    node = nodes.pop()
    if isinstance(node, ast.Import):
      found.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert not node.level, f"{module} uses a relative import."
      for alias in node.names:
        full = f"{node.module}.{alias.name}"
        found.add(full if full in _sources() else str(node.module))
    elif not (at_start and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))):
      nodes.extend(ast.iter_child_nodes(node))
  return frozenset(found)


def _is_within(module: str, layer: str) -> bool:
  return module == layer or module.startswith(layer + ".")


def _layer(module: str) -> str:
  """Returns the innermost layer of a module, or "" if the module has none."""
  layer = max((layer for layer in _ALLOWED_IMPORTS if _is_within(module, layer)), key=len)
  return layer if layer != "agents" or module == "agents" else ""


def _is_in_project(module: str) -> bool:
  return module.split(".")[0] in {"agents", "configs", "train", "visualize"}


@functools.cache
def _loaded_modules(module: str) -> frozenset[str]:
  """Returns the modules and packages that the import of a module loads."""
  loaded: set[str] = set()
  remaining = [module]
  while remaining:
    name = remaining.pop()
    if name in loaded:
      continue
    loaded.add(name)
    if name in _sources():
      remaining.extend(_imports(name, at_start=True))
      parents = name.split(".")[:-1]
      remaining.extend(".".join(parents[: end + 1]) for end in range(len(parents)))
  return frozenset(loaded)


def _loads_tensorflow(module: str) -> bool:
  return any(name.split(".")[0] in _TENSORFLOW for name in _loaded_modules(module))


def test_sources_and_imports_are_found():
  assert {
    "agents",
    "agents.types",
    "agents.algorithms.ppo",
    "agents.environments.workers.worker_main",
    "agents.configs.default",
    "train",
    "visualize",
  } <= _sources().keys()
  assert "agents.ops.random" in _imports("agents.algorithms.ppo")
  assert _loads_tensorflow("agents.algorithms.ppo")
  # `at_start` excludes imports within functions.
  training_run = "agents.training_run"
  assert "agents.build" in _imports(training_run)
  assert "agents.build" not in _imports(training_run, at_start=True)


@pytest.mark.parametrize("module", sorted(_sources()))
def test_module_imports_only_allowed_modules(module):
  layer = _layer(module)
  assert layer, f"Add a layer for {module} to `_ALLOWED_IMPORTS`."
  allowed = _ALLOWED_IMPORTS[layer] | {layer}
  for imported in _imports(module):
    if _is_in_project(imported):
      assert any(_is_within(imported, target) for target in allowed), (
        f"{module} must not import {imported}."
      )


@pytest.mark.parametrize("layer", ["train", "visualize", "agents.__main__"])
def test_no_module_imports_a_command_line(layer):
  assert not [
    module
    for module in _sources()
    if module != layer and any(_is_within(name, layer) for name in _imports(module))
  ]


@pytest.mark.parametrize(
  "module",
  sorted(
    module
    for module in _sources()
    if _layer(module)
    in (
      "agents",
      "agents.errors",
      "agents.config",
      "agents.config_parsing",
      "agents.environments",
      "agents.live_page",
      "agents.reports",
      "agents.videos",
      "agents.configs",
      "agents.configs.presets",
      "agents.zoo",
      "agents.__main__",
      "train",
      "visualize",
    )
    or module
    in (
      f"agents.commands.{name}"
      for name in (
        "train",
        "visualize",
        "check",
        "report",
        "stress",
        "watch",
        "list",
        "config",
        "completion",
        "zoo",
        "shared.merge_settings",
      )
    )
  ),
)
def test_modules_of_workers_and_command_lines_load_no_tensorflow(module):
  assert not _loads_tensorflow(module), sorted(_loaded_modules(module))


def test_functions_of_environments_import_no_tensorflow():
  for module in _sources():
    if _layer(module) == "agents.environments":
      imported = {name.split(".")[0] for name in _imports(module)}
      assert not imported & _TENSORFLOW, module


@pytest.mark.parametrize(
  "name, expected_users",
  [
    ("numpy_function", set()),
    (
      "pickle",  # Only within one machine.
      {
        "agents.environments.making.copied_registrations",
        "agents.environments.workers.protocol",
        "agents.environments.workers.worker_main",
        "agents.training.monitoring.training_videos",
        "agents.videos.background",
        "agents.videos.render_pool",
        "agents.videos.render_worker",
      },
    ),
    ("py_function", {"agents.simulation.in_graph_batch_env"}),
    ("tensorflow_probability", {"agents.networks.continuous", "agents.networks.discrete"}),
  ],
)
def test_name_is_used_only_by_the_expected_modules(name, expected_users):
  def names(module):
    for node in ast.walk(_tree(module)):
      if isinstance(node, ast.Attribute):
        yield node.attr
      elif isinstance(node, ast.Name):
        yield node.id
    yield from _imports(module)

  users = {module for module in _sources() if name in set(names(module))}
  assert users == expected_users


@pytest.mark.parametrize("module", ["train", "visualize", "agents.__main__"])
def test_command_lines_start_without_tensorflow(module):
  code = (
    f"import sys, {module}; "
    f"print([name for name in {sorted(_TENSORFLOW)!r} "
    "if name in sys.modules])"
  )
  result = subprocess.run(
    [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, timeout=60
  )
  assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr
