"""docs/metrics.md explains exactly the tags and fields that runs write."""

import json
import pathlib
import re

import pytest
from tensorboard.backend.event_processing import event_accumulator

from tests.support import command
from tests.videos import gl_support

_PAGE = (pathlib.Path(__file__).parents[3] / "docs/metrics.md").read_text()


def _documented_tags() -> set[str]:
  """Returns the tags in the table of docs/metrics.md."""
  table = _PAGE.split("| tag | meaning |")[1].split("\n\n")[0]
  tags = set()
  for line in table.splitlines()[2:]:
    group = ""
    for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
      group = name.rpartition("/")[0] or group
      tags.add(f"{group}/{name.rpartition('/')[2]}")
  return tags


def _documented_fields() -> set[str]:
  """Returns the fields in the table of docs/metrics.md."""
  table = _PAGE.split("| field | phase | meaning |")[1].split("\n\n")[0]
  return {
    name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])
  }


def _written_tags(*folders) -> set[str]:
  tags = set()
  for folder in folders:
    for part in ("", "train", "eval"):
      events = event_accumulator.EventAccumulator(str(folder / part))
      tags |= set(events.Reload().Tags()["tensors"])
  return {re.sub("^(reward_parts|(weight|gradient)_norms)/.*", r"\1/...", tag) for tag in tags}


@pytest.mark.slow
def test_fields_of_every_run_are_documented(finished):
  lines = (finished[0] / "metrics.jsonl").read_text().splitlines()
  assert _documented_fields() == set().union(*map(json.loads, lines))


@pytest.mark.slow
def test_tags_of_every_run_are_documented(finished, finished_paper):
  written = _written_tags(finished[0], finished_paper[0])
  # TensorBoard stores the content of two of its pages under these tags.
  written -= {
    tag for tag in written if tag.startswith("_hparams_") or tag == "custom_scalars__config__"
  }
  elsewhere = {
    *("films/training", "health/warnings"),
    *("metrics/...", "randomization/...", "reward_parts/..."),
  }
  assert _documented_tags() == written | elsewhere


@pytest.mark.slow
@pytest.mark.skipif(not gl_support.egl_works(), reason="There is no EGL.")
def test_documented_tags_of_videos_and_rewards_are_written(tmp_path):
  done = command.run(
    *command.EAGER_REACHER,
    "--steps",
    "512",
    "--video-every",
    "200",
    "--logdir",
    tmp_path / "logdir",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  folder = command.run_folder(tmp_path / "logdir")
  assert {"films/training", "reward_parts/..."} <= _written_tags(folder)
  films = list((folder / "videos").iterdir())
  assert films and all(film.suffix == ".mp4" for film in films)
