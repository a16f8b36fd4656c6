"""What is installed from a wheel works anywhere, and keeps to itself."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests import command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """A wheel, built from the sdist of a copy of the checkout."""
  folder = tmp_path_factory.mktemp("dist")
  checkout = folder / "checkout"
  subprocess.run(
      ["git", "clone", "-q", command.ROOT, checkout], check=True)
  done = subprocess.run(
      [sys.executable, "-m", "build", "--outdir", folder, checkout],
      capture_output=True, text=True)
  assert done.returncode == 0, done.stdout + done.stderr
  assert list(folder.glob("*.tar.gz"))
  built, = folder.glob("*.whl")
  return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
  """Where pip has installed the wheel."""
  target = tmp_path_factory.mktemp("site")
  subprocess.run(
      [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target",
       target, wheel], check=True)
  return target


def test_nothing_generic_is_dropped_at_the_top(wheel):
  names = zipfile.ZipFile(wheel).namelist()
  tops = {name.split("/")[0] for name in names}
  assert {top for top in tops if not top.endswith(".dist-info")} == {"agents"}
  assert {"agents/configs/cheetah.py", "agents/configs/presets/paper.py"
          } <= set(names)


def _run(installed, cwd, *args):
  """Run the console command, of the installed files and no others."""
  return subprocess.run(
      [sys.executable, installed / "bin" / "batch-ppo", *map(str, args)],
      cwd=cwd, capture_output=True, text=True, timeout=300,
      env={**os.environ, "PYTHONPATH": str(installed)})


def test_the_same_commands_work_from_any_folder(installed, tmp_path):
  listed = _run(installed, tmp_path, "train", "--config", "list")
  assert "HalfCheetah-v5" in listed.stdout, listed.stderr
  done = _run(installed, tmp_path, "train", *command.SMALL, "--steps", "400",
              "--logdir", tmp_path / "logdir")
  assert done.returncode == 0, done.stderr
  folder = command.run_folder(tmp_path / "logdir")
  assert f"To extend: batch-ppo train --resume {folder}" in done.stdout
  assert f"To watch: batch-ppo visualize --logdir {folder}" in done.stdout
  done = _run(installed, tmp_path, "visualize", "--logdir", "logdir",
              "--num_episodes", "1", "--size", "64")
  assert done.returncode == 0, done.stderr
  assert list((folder / "videos").glob("*.mp4"))
  (tmp_path / "mine.py").write_text(
      "from agents.configs import default\n"
      "CONFIG = default.CONFIG.override({'env.id': 'CartPole-v1'})\n")
  done = _run(installed, tmp_path, "train", "--config", "mine.py",
              "--print_config")
  assert "env.id: CartPole-v1" in done.stdout, done.stderr
  where = subprocess.run(
      [sys.executable, "-c", "import agents; print(agents.__file__)"],
      cwd=tmp_path, capture_output=True, text=True,
      env={**os.environ, "PYTHONPATH": str(installed)})
  assert where.stdout.startswith(str(installed))
