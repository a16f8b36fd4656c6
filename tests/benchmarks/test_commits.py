import pytest

from benchmarks import commits
from benchmarks.common import machine


def _answer(seconds, checksum=1, **metrics):
  return {
    "seconds": dict.fromkeys(commits._PARTS, seconds),
    "metrics": metrics,
    "checksum": checksum,
  }


def test_ratio_is_two_for_a_checkout_that_takes_half_the_time():
  pairs = [
    commits.Pair(_answer(0.2), _answer(0.1)),
    commits.Pair(_answer(0.4), _answer(0.2)),
    commits.Pair(_answer(0.6), _answer(0.6)),
  ]
  assert commits.cells(pairs) == ["400.0", "200.0", *["2.000"] * len(commits._PARTS), "yes"]


def test_part_that_takes_no_time_has_no_ratio():
  pair = commits.Pair(_answer(0.2), _answer(0.1))
  pair.checkout["seconds"]["crossing"] = 0.0
  assert commits.cells([pair])[2:5] == ["2.000", "2.000", "-"]


@pytest.mark.parametrize(
  "metrics, identical",
  [({"kl": 0.1}, True), ({"kl": 0.1, "new": 1.0}, True), ({"kl": 0.1 + 1e-15}, False)],
)
def test_common_metrics_are_compared_to_the_last_bit(metrics, identical):
  pair = commits.Pair(_answer(1.0, kl=0.1, old=2.0), _answer(1.0, **metrics))
  assert commits.identical(pair) == identical


def test_nan_is_identical_to_nan():
  nan = float("nan")
  assert commits.identical(commits.Pair(_answer(1.0, kl=nan), _answer(1.0, kl=float("nan"))))


def test_different_variables_are_not_identical():
  assert not commits.identical(commits.Pair(_answer(1.0, checksum=1), _answer(1.0, checksum=2)))


# Eager, because compilation would take longer than the updates.
_CONFIG = """
from agents.configs import default
CONFIG = default.CONFIG.override({
    "env.id": "InvertedPendulum-v5", "num_envs": 2, "eval_episodes": 1, "eager": True,
    "algorithm.minibatch_size": 32, "algorithm.update_epochs": 1})
"""


@pytest.mark.slow
def test_checkout_is_identical_to_itself(tmp_path):
  root, config = machine.REPOSITORY, tmp_path / "quick.py"
  config.write_text(_CONFIG)
  pairs = commits.measure([root, root], str(config), None, num_updates=2)
  assert len(pairs) == 2
  assert commits.cells(pairs)[-1] == "yes"
  assert all(answer["seconds"]["total"] > 0 for pair in pairs for answer in pair)


def test_commit_that_cannot_train_reports_the_error(tmp_path):
  (tmp_path / "agents").mkdir()
  (tmp_path / "benchmarks").mkdir()
  (tmp_path / "benchmarks" / "__init__.py").touch()
  (tmp_path / "agents" / "__init__.py").write_text("raise ImportError")
  process = commits.start_training(tmp_path, "debug", None)
  process.request()
  with pytest.raises(machine.ProcessFailed, match=r"(?s)old_layout.*ImportError"):
    process.receive()
  process.close()


def test_commit_with_the_module_serve_updates_uses_its_own_module(tmp_path):
  server = tmp_path / commits._SERVERS / "serve_updates.py"
  server.parent.mkdir(parents=True)
  (server.parents[1] / "__init__.py").touch()
  server.write_text("import sys\nfor _ in sys.stdin: print('[1]', flush=True)")
  process = commits.start_training(tmp_path, "debug", None)
  process.request()
  assert process.receive() == [1]
  process.close()


def test_unknown_commit_ends_the_program(tmp_path):
  with pytest.raises(SystemExit, match="git has no files of no-such-commit"):
    commits.extract("no-such-commit", tmp_path)
