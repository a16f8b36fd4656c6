import pathlib

import pytest

from benchmarks import commits


def _answer(total, **metrics):
  return {**dict.fromkeys(commits._SECONDS, total), "metrics": metrics}


def test_a_checkout_that_takes_half_the_time_is_twice_as_fast():
  found = [(_answer(0.2), _answer(0.1)), (_answer(0.4), _answer(0.2)),
           (_answer(0.6), _answer(0.6))]
  assert commits.cells(found) == [
      "400.0", "200.0", *["2.000"] * len(commits._SECONDS), "yes"]


@pytest.mark.parametrize("here, same", [
    ({"kl": 0.1}, "yes"), ({"kl": 0.1, "new": 1.0}, "yes"),
    ({"kl": 0.1 + 1e-15}, "no")])
def test_numbers_are_the_same_if_all_that_both_know_are(here, same):
  found = [(_answer(1.0, kl=0.1, old=2.0), _answer(1.0, **here))]
  assert commits.cells(found)[-1] == same


@pytest.mark.slow
def test_a_checkout_makes_the_same_numbers_as_itself():
  root = pathlib.Path(commits.__file__).parents[1]
  found = commits.measure([root, root], "debug", updates=2)
  assert len(found) == 2
  assert commits.cells(found)[-1] == "yes"
  assert all(answer["total"] > 0 for pair in found for answer in pair)


def test_code_that_cannot_be_run_is_told(tmp_path):
  trainer = commits.Trainer(tmp_path, "debug")
  with pytest.raises(commits.machine.Failed, match="benchmarks.commits"):
    trainer.update()
  trainer.close()
