"""Makes an entry of the zoo from a finished run."""

import datetime
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents import config as config_lib
from agents import config_parsing, configs
from agents.environments.making import make
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import atomic_write, checkpoint, provenance, run_folder
from agents.zoo import entries, film, fingerprint, score

_FILM_PIXELS = 160
_FILM_SECONDS = 4.0
_MAX_FILM_BYTES = 100_000


def add(
  run: run_folder.RunFolder, name: str, out: pathlib.Path, seed_scores: Sequence[float] = ()
) -> entries.Entry:
  """Evaluates, films and copies the final policy of a run.

  Args:
    run: Folder of a run that was trained on this machine.
    name: Name of the config.
    out: New folder of the entry.
    seed_scores: Scores of runs with different seeds; empty takes those that the
      named config expects, see `configs.Expected`.

  Returns:
    Contents of entry.yaml.

  Raises:
    ConfigError: If the run is not finished, has other settings than the named
      config, has a score outside of the interval over seeds, or is too large.
    RunError: If the policy cannot be exported or filmed.
  """
  path = checkpoint.newest_readable(run.checkpoints)
  metadata = checkpoint.load_metadata(path)
  check(run, name, metadata)
  if out.exists():
    raise config_lib.ConfigError(f"{out} exists already. Delete it to replace the entry.")
  make.check(run.config.env, needs_rendering=True)
  with atomic_write.new_folder(out) as folder:
    _copy_run(run, path, metadata, folder)
    entries.check_size(folder)  # Before the evaluation, which takes longer.
    entry = _evaluate(run, path, metadata, name, seed_scores)
    entries.write(folder, entry)
    _export(run, path, folder)
    film.record(folder, folder / "film.mp4", _FILM_PIXELS, _FILM_SECONDS)
    _check_film(folder / "film.mp4")
    entries.check_size(folder)
  return entry


def check(run: run_folder.RunFolder, name: str, metadata: dict[str, Any]) -> None:
  """Checks that a run has finished, with the settings of a named config.

  Args:
    run: Run folder.
    name: Name of the config.
    metadata: Metadata of the newest checkpoint.

  Raises:
    ConfigError: If the run is not finished or has other settings.
  """
  if name not in configs.names():
    hint = config_parsing.did_you_mean(name, configs.names())
    raise config_lib.ConfigError(
      f"'{name}' is not a named config.{hint} The zoo contains only policies of named configs."
    )
  if not checkpoint.complete(metadata["step"], metadata["done"], run.config.steps):
    raise config_lib.ConfigError(
      f"{run.path} has not finished: {metadata['step']:,} of {run.config.steps:,} steps."
    )
  if changed := differences(run.config, name):
    raise config_lib.ConfigError(
      f"{run.path} has other settings than the config {name}: {', '.join(changed)}. An entry of "
      "the zoo may differ only in its seed."
    )


def differences(config: config_lib.Config, name: str) -> list[str]:
  """Returns the settings that differ from a named config, except the seed.

  Args:
    config: Settings of a run.
    name: Name of the config.

  Returns:
    A text such as "num_envs 64 -> 32" for each setting.
  """
  _, named = configs.load(name)
  return provenance.differences(
    config_lib.flat(named), config_lib.flat(config.override({"seed": named.seed}))
  )


def _copy_run(
  run: run_folder.RunFolder, path: pathlib.Path, metadata: dict[str, Any], folder: pathlib.Path
) -> None:
  """Copies config, versions, and the variables of the policy."""
  for file in ("config.yaml", "versions.yaml", "code.yaml"):
    shutil.copy(run.path / file, folder)
  (folder / "checkpoints").mkdir()
  kept = {key: metadata[key] for key in ("step", "done", "seconds", "best_score")}
  checkpoint.save(folder / "checkpoints", metadata["step"], fingerprint.variables(path), kept)


def _evaluate(
  run: run_folder.RunFolder,
  path: pathlib.Path,
  metadata: dict[str, Any],
  name: str,
  seed_scores: Sequence[float],
) -> entries.Entry:
  """Returns the contents of entry.yaml."""
  if not seed_scores:
    _, expected = configs.about(name)
    seed_scores = expected.scores if expected else ()
  returns = score.evaluate(run, path)
  entry = entries.Entry(
    config=name,
    task=run.config.env.id,
    command=f"python train.py --config {name} --seed {run.config.seed}",
    seed=run.config.seed,
    steps=metadata["step"],
    score=round(float(np.mean(returns)), 3),
    score_std=round(float(np.std(returns)), 3),
    episodes=len(returns),
    minutes=round(metadata["seconds"] / 60, 2),
    date=f"{datetime.date.today():%Y-%m-%d}",
    digest=fingerprint.digest(fingerprint.variables(path)),
    platform=fingerprint.platform(),
    seed_scores=tuple(map(float, seed_scores)),
    interval=score.interval(seed_scores),
  )
  _check_score(entry)
  return entry


def _check_score(entry: entries.Entry) -> None:
  """Raises ConfigError if the score is not in the interval over seeds."""
  if entry.interval and not entry.interval[0] <= entry.score <= entry.interval[1]:
    low, high = entry.interval
    raise config_lib.ConfigError(
      f"The score {entry.score:g} is not in the interval [{low:g}, {high:g}], which follows from "
      f"the scores of seeds: {', '.join(f'{each:g}' for each in entry.seed_scores)}. Update "
      "EXPECTED in the config, or give current scores with --scores."
    )


def _check_film(path: pathlib.Path) -> None:
  """Raises ConfigError if a film is too large."""
  if (size := path.stat().st_size) > _MAX_FILM_BYTES:
    raise config_lib.ConfigError(
      f"The film has {size:,} bytes, but a film in the zoo has at most {_MAX_FILM_BYTES:,}."
    )


def _export(run: run_folder.RunFolder, path: pathlib.Path, folder: pathlib.Path) -> None:
  """Writes policy.npz, which `write` compares with the policy in training."""
  with quiet_imports.quiet_imports():
    from agents.export import write

  write.write_npz(run, path, folder)
