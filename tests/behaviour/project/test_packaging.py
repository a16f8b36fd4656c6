"""The package works from a wheel, a checkout and a source archive."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile

import nbclient
import nbformat
import pytest

from tests.support import command

pytestmark = pytest.mark.slow

_IMPORTS = """
import pathlib
import agents
from agents import configs
from agents.configs import default
from agents.configs import presets
from agents.zoo import entries
assert "cartpole" in entries.names() and entries.read(entries.find("cartpole")).steps
assert "cheetah" in configs.names() and "paper" in presets.names()
assert default.CONFIG == configs.load("default")[1]
for module in (agents, configs, default, presets):
  print(pathlib.Path(module.__file__).resolve())
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
  """Returns a clone of this repository, which is not installed."""
  path = tmp_path_factory.mktemp("clone") / "checkout"
  subprocess.run(["git", "clone", "-q", command.ROOT, path], check=True)
  return path


@pytest.fixture(scope="module")
def archive(checkout, tmp_path_factory):
  """Returns a folder with the unpacked `git archive`, like a source release."""
  path = tmp_path_factory.mktemp("archive")
  packed = subprocess.run(
    ["git", "archive", "--format=tar", "HEAD"], cwd=checkout, check=True, capture_output=True
  ).stdout
  subprocess.run(["tar", "-x"], cwd=path, input=packed, check=True)
  return path


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
  """Returns the wheel that is built from the sdist of the checkout."""
  folder = tmp_path_factory.mktemp("dist")
  done = subprocess.run(
    [sys.executable, "-m", "build", "--outdir", folder, checkout], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stdout + done.stderr
  assert list(folder.glob("*.tar.gz"))
  (built,) = folder.glob("*.whl")
  return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
  """Returns the folder into which pip installed the wheel."""
  target = tmp_path_factory.mktemp("site")
  subprocess.run(
    [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel],
    check=True,
  )
  return target


def _python(path, cwd, *args):
  """Runs Python with a folder in PYTHONPATH."""
  return subprocess.run(
    [sys.executable, *map(str, args)],
    cwd=cwd,
    capture_output=True,
    text=True,
    timeout=300,
    env={**os.environ, "PYTHONPATH": str(path)},
  )


def test_wheel_contains_one_top_level_package(wheel):
  names = zipfile.ZipFile(wheel).namelist()
  top_level = {name.split("/")[0] for name in names}
  assert {name for name in top_level if not name.endswith(".dist-info")} == {"agents"}
  assert {
    "agents/configs/cheetah.py",
    "agents/configs/presets/paper.py",
    "agents/translation/same_arguments.csv",
    "agents/py.typed",
    "agents/export/formats/npz.md",
    "agents/export/templates/README.md",
    "agents/live_page/assets/page.html",
    "agents/reports/page.css",
    "agents/reports/page.html",
    "agents/reports/figures.mplstyle",
    "agents/reports/published_scores.csv",
    "agents/stress/page.html",
    "agents/zoo/policies/cartpole/entry.yaml",
    "agents/zoo/policies/cartpole/policy.npz",
  } <= set(names)


@pytest.mark.parametrize("source", ["checkout", "archive", "installed"])
def test_configs_are_importable_as_agents_configs(source, tmp_path, request):
  path = request.getfixturevalue(source)
  done = _python(path, tmp_path, "-c", _IMPORTS)
  assert done.returncode == 0, done.stderr
  for imported in done.stdout.splitlines():
    assert pathlib.Path(imported).is_relative_to(path.resolve())


@pytest.mark.parametrize("source", ["checkout", "archive"])
def test_sources_contain_no_links(source, request):
  path = request.getfixturevalue(source)
  assert not [each for each in path.rglob("*") if each.is_symlink()]


@pytest.mark.parametrize("source", ["checkout", "archive"])
def test_sources_run_without_installation(source, tmp_path, request):
  path = request.getfixturevalue(source)
  done = _python(tmp_path, tmp_path, path / "train.py", "--config", "cheetah", "--print-config")
  assert "env.id: HalfCheetah-v5" in done.stdout, done.stderr


def _run(installed, cwd, *args):
  """Runs the installed console command."""
  return _python(installed, cwd, installed / "bin" / "batched-ppo", *args)


def test_installed_commands_work_from_any_folder(installed, tmp_path):
  listed = _run(installed, tmp_path, "train", "--config", "list")
  assert "HalfCheetah-v5" in listed.stdout, listed.stderr
  done = _run(
    installed, tmp_path, "train", *command.SMALL, "--steps", "400", "--logdir", tmp_path / "logdir"
  )
  assert done.returncode == 0, done.stderr
  folder = command.run_folder(tmp_path / "logdir")
  assert f"To extend: batched-ppo train {folder}" in done.stdout
  assert f"To watch: batched-ppo visualize {folder}" in done.stdout
  done = _run(
    installed, tmp_path, "visualize", "--logdir", "logdir", "--num-episodes", "1", "--size", "64"
  )
  assert done.returncode == 0, done.stderr
  assert list((folder / "videos").glob("*.mp4"))
  (tmp_path / "mine.py").write_text(
    "from agents.configs import default\n"
    "CONFIG = default.CONFIG.override({'env.id': 'CartPole-v1'})\n"
  )
  done = _run(installed, tmp_path, "train", "--config", "mine.py", "--print-config")
  assert "env.id: CartPole-v1" in done.stdout, done.stderr


@pytest.fixture
def kernel(tmp_path, monkeypatch):
  """Returns the name of a Jupyter kernel in a new environment, and its folder.

  The environment also contains the packages of the current one, because
  `.ci/run` has installed them in a new environment already.
  """
  folder, packages = tmp_path / "environment", tmp_path / "packages"
  venv.create(folder)
  packages.mkdir()
  for path in pathlib.Path(sysconfig.get_path("purelib")).iterdir():
    if "batched_ppo" not in path.name:
      (packages / path.name).symlink_to(path)
  (site,) = folder.glob("lib/python*/site-packages")
  (site / "packages.pth").write_text(str(packages))
  specification = {
    "argv": [f"{folder}/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "display_name": "new",
    "language": "python",
    # Libraries that other tests import can select a backend without display.
    "env": {"PYTHONPATH": "", "MPLBACKEND": "module://matplotlib_inline.backend_inline"},
  }
  path = tmp_path / "jupyter" / "kernels" / "new" / "kernel.json"
  path.parent.mkdir(parents=True)
  path.write_text(json.dumps(specification))
  monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
  return "new", folder


def test_quickstart_installs_the_wheel_trains_plots_and_films(wheel, kernel, tmp_path):
  kernel_name, environment = kernel
  folder = tmp_path / "notebook"
  folder.mkdir()
  shutil.copy(wheel, folder)
  notebook = nbformat.read(command.ROOT / "docs" / "quickstart.ipynb", 4)
  tags = [cell.metadata.get("tags") for cell in notebook.cells]
  shorter = nbformat.v4.new_code_cell("STEPS = 2_048")
  notebook.cells.insert(tags.index(["parameters"]) + 1, shorter)
  notebook.cells.append(nbformat.v4.new_code_cell("import agents; print(agents.__file__)"))
  nbclient.NotebookClient(
    notebook, timeout=300, kernel_name=kernel_name, resources={"metadata": {"path": str(folder)}}
  ).execute()
  *_, train, plot, film, place = (
    cell.outputs for cell in notebook.cells if cell.cell_type == "code"
  )
  assert "Finished 2,048 steps" in "".join(output.get("text", "") for output in train)
  assert any("image/png" in output.get("data", {}) for output in plot)
  assert any("<video" in output.get("data", {}).get("text/html", "") for output in film)
  assert pathlib.Path(place[0].text.strip()).is_relative_to(environment)
