"""The commands of README.md and of the pages in docs/ work.

Forked processes run the commands with smaller budgets, and eagerly, because
compilation would take longer than the runs. The commands of `pip` and
TensorBoard are left out, because `test_readme_commands` runs them. The
benchmarks have tests of their own in tests/benchmarks/; here, only their
options are compared with `--help`.
"""

import importlib.util
import os
import re
import shutil
import signal
import urllib.request

import pytest

from agents.robots import robot
from tests.behaviour.docs import shell_commands
from tests.reports import folders
from tests.support import command, forked
from tests.videos import gl_support

pytestmark = pytest.mark.slow

_EAGER = "--set eager=true --set algorithm.update_epochs=1"
_SMALL = (
  f"{_EAGER} --set num_envs=4 --set algorithm.segment_length=64 "
  "--set eval_episodes=1 --set eval_every=99999"
)
_SHORTER = {
  "--set num_envs=32": f"--steps 256 {_SMALL}",
  "--set logger=": f"--steps 256 --logdir others {_SMALL} --set logger=",
  "env.id=BipedalWalker-v3": f"env.id=BipedalWalker-v3 --steps 256 {_SMALL}",
  "--preset paper --steps 6e4": f"--preset paper --steps 300 {_EAGER}",
  "--seed 1 --steps 2e4": f"--steps 1024 {_EAGER}",
  "--steps 1.2e6": "--steps 512",
  "--num-episodes 4": "--num-episodes 2 --size 64",
  "--num-episodes 1": "--num-episodes 1 --size 64",
  "--size 160": "--size 64",
  "--episode -1": "--episode -1 --size 64",
  "--trials 50 --steps 3e5": f"--trials 2 --steps 256 {_SMALL}",
  "--population 4 --generations 5 --steps 2e5": (
    f"--population 2 --generations 2 --steps 512 {_SMALL}"
  ),
  "--logdir ~/forks --steps 2e5": "--logdir ~/forks --steps 256",
}
_LEFT_OUT = (
  "pip ",
  "python3 -m venv ",
  "tensorboard ",
  "python -m agents watch ",
  "python -m benchmarks.",
)


def _run(line, home):
  for old, new in _SHORTER.items():
    line = line.replace(old, new)
  return shell_commands.run_forked(line, home)


def _commands(page):
  lines = shell_commands.commands(page)
  return [line for line in lines if not line.startswith(_LEFT_OUT)]


def test_commands_about_runs_and_exports(tmp_path):
  if not gl_support.egl_works():
    pytest.skip("Videos need EGL.")
  for module in "Box2D", "alembic", "mlflow", "wandb":
    pytest.importorskip(module)
  logdir = tmp_path / "logdir"
  done = set()
  for page in "docs/usage.md", "docs/export.md", "README.md":
    if page == "docs/export.md":
      shutil.rmtree(tmp_path / "policy")  # Both pages write it.
    for line in _commands(page):
      if line not in done:
        done.add(line)
        # The later commands need the run of the first one.
        if "BipedalWalker" in line or page == "README.md" and "--config" in line:
          line += f" --logdir {tmp_path / 'others'}"
        _run(line, tmp_path)
  assert (tmp_path / "mlflow.db").exists() and list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
  (run,) = logdir.iterdir()
  assert command.rows(run)[-1]["step"] == 512
  names = {path.name for path in (run / "videos").glob("*.mp4")}
  assert len(names) >= 3 and any("grid" in name for name in names)
  for path in ("report.html", "policy/saved_model", "policy/policy.npz", "sampled/policy.onnx"):
    assert (tmp_path / path).exists(), path


@pytest.mark.parametrize("page", ["environments", "observations"])
def test_commands_about_environments_and_observations(page, tmp_path):
  lines = _commands(f"docs/{page}.md")
  assert lines
  for line in lines:
    if "--config pixel_" in line and not gl_support.egl_works():
      continue
    if "backend=envpool" in line and not importlib.util.find_spec("envpool"):
      continue
    if "--preset" in line:  # Whole episodes have no fixed number of steps.
      output = _run(f"{line} --steps 300 --set algorithm.update_epochs=1", tmp_path)
      assert "Finished" in output
    else:
      # With `vector`, steps that only reset do not count.
      output = _run(f"{line} --steps 256 {_SMALL}", tmp_path)
      assert int(re.search(r"Finished (\d+) steps", output)[1]) >= 256, output


def test_commands_about_forks(tmp_path):
  source, fork, other_fork, early = (
    _run(f"{re.sub('--steps 1e5', '', line)} --steps 256 {_SMALL}", tmp_path)
    for line in _commands("docs/forks.md")
  )
  for output in source, fork, other_fork, early:
    assert "Finished 256 steps" in output
  assert "Starts from" in fork and "Starts from" in other_fork


def test_commands_about_sweeps(tmp_path):
  pytest.importorskip("optuna")
  text = (command.ROOT / "docs" / "sweeps.md").read_text()
  spaces = re.findall(r"```yaml\n(algorithm.*?)```", text, re.S)
  for name, space in zip(("space.yaml", "rates.yaml"), spaces, strict=True):
    (tmp_path / name).write_text(space)
  sweep, report, population = (_run(line, tmp_path) for line in _commands("docs/sweeps.md"))
  assert "To train with the best" in sweep
  assert "4 of them are complete" in population
  assert (tmp_path / "logdir" / "sweeps" / "cheetah").is_dir() and ".html" in report


def test_commands_about_the_zoo(tmp_path):
  # tests/commands/test_zoo.py verifies another policy, which needs less time.
  lines = [line for line in _commands("docs/zoo.md") if "zoo verify" not in line]
  table, *films, forked = [_run(line, tmp_path) for line in lines]
  assert "CartPole-v1" in table
  assert all("return 500.0" in output for output in films)
  assert "Starts from zoo/cartpole@100352" in forked and "Finished 1,024 steps" in forked
  assert float(re.search(r"Return ([\d.]+) at the end", forked)[1]) > 400
  files = {path.parent.name: path.name for path in tmp_path.rglob("*.mp4")}
  assert files[tmp_path.name] == "cartpole.mp4" and "cartpole" in files


def test_commands_about_stress(tmp_path):
  (line,) = _commands("docs/stress.md")
  output = _run(f"{line} --num-episodes 2 --no-films", tmp_path)
  assert "control: survival" in output and "noise 0.2: survival" in output
  assert (tmp_path / "stress.html").is_file()


def test_commands_about_robots(tmp_path):
  pytest.importorskip("envpool")
  if not gl_support.egl_works():
    pytest.skip("Videos need EGL.")
  scene = robot.find_scene(robot.ROBOTS["spot"].scene)
  small = f"--steps 512 {_SMALL} --set algorithm.minibatch_size=64"
  train, film, commands, stress, custom, symmetric = _commands("docs/robots.md")
  assert "Finished 512 steps" in _run(f"{train} {small}", tmp_path)
  assert "return" in _run(film, tmp_path)
  assert "mean velocity" in _run(
    commands.replace("for 3s", "for 0.2s").replace("for 2s", "for 0.1s"), tmp_path
  )
  assert "control: survival" in _run(
    f"{stress.replace('episodes 20', 'episodes 2')} --no-films", tmp_path
  )
  assert "Finished 512 steps" in _run(f"{symmetric} {small}", tmp_path)
  assert "Finished 512 steps" in _run(
    f"{custom.replace('my_robot.xml', str(scene))} {small}", tmp_path
  )


def test_command_of_the_live_page(tmp_path):
  folders.make(tmp_path / "logdir" / "1-cheetah", [1.0])
  line, *others = _commands("docs/watch.md")
  assert line == "batched-ppo watch ~/logdir" and not others
  process = forked.Process("agents", ["watch", "~/logdir"], tmp_path, {"HOME": str(tmp_path)})
  process.stdout.readline()
  with urllib.request.urlopen(process.stdout.readline().strip()) as page:
    assert b"<title>" in page.read()
  process.send_signal(signal.SIGTERM)
  assert process.wait(timeout=60) == 143


def test_every_page_with_commands_has_a_test():
  # The commands in `results` and `index` are those of other pages.
  tested = "environments export extending forks index observations results sweeps".split()
  tested += ["robots", "stress", "tutorial", "usage", "watch", "zoo"]
  for name in sorted(os.listdir(command.ROOT / "docs")):
    page = name.removesuffix(".md")
    if name.endswith(".md") and page not in tested:
      assert not _commands(f"docs/{name}"), f"No test runs the commands of docs/{name}."


@pytest.mark.parametrize("page", ["performance", "results", "troubleshooting", "watch"])
def test_options_of_benchmarks_exist(page):
  lines = [line for line in shell_commands.commands(f"docs/{page}.md") if "benchmarks." in line]
  assert lines
  for line in lines:
    program, *arguments = line.removeprefix("python -m ").split()
    known = shell_commands.run(f"python -m {program} --help", command.ROOT, command.ROOT)
    for option in (word for word in arguments if word.startswith("--")):
      assert option in known, line
