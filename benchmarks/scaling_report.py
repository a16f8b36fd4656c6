"""What `benchmarks.scaling` has found: numbers, tables and advice."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks import advice as advice_lib
from benchmarks import scaling_points
from benchmarks import speed as speed_lib
from benchmarks.common import tables

# All rounds of every point that could be measured.
Results = dict[scaling_points.Point, list[speed_lib.Speed]]
LABELS = {
    "envs": "environments", "workers": "worker processes",
    "width": "units of every hidden layer", "minibatch": "minibatch size"}
_NOISY = 0.2  # Spread of the same measurement beyond which it says little.


def panel(points: dict[int, scaling_points.Point], results: Results
          ) -> list[dict[str, Any]]:
  """Return what was measured along one axis, for each place on it."""
  return [{"x": x, "settings": list(point.settings),
           "steps_per_second": _speeds(results[point])}
          for x, point in points.items() if point in results]


def added_memory(pairs: dict[str, tuple[scaling_points.Point, scaling_points.Point]],
                 results: Results) -> dict[str, float]:
  """Return bytes per added environment of all that was measured for it.

  Args:
    pairs: Points with FEW_ENVS and with MANY_ENVS environments, by name.
    results: All measurements.
  """
  slopes = {}
  for name, pair in pairs.items():
    few, many = [[speed.memory for speed in results.get(point, [])
                  if speed.memory is not None] for point in pair]
    if few and many:
      slopes[name] = (statistics.median(many) - statistics.median(few)) / (
          scaling_points.MANY_ENVS - scaling_points.FEW_ENVS)
  return slopes


def recommendation(choices: Sequence[scaling_points.Point],
                   others: Sequence[scaling_points.Point], results: Results
                   ) -> dict[str, Any] | None:
  """Return the fastest choice, with the speeds of all.

  Args:
    choices: Of equal results; among them the config as it is.
    others: Points that learn differently, only to know of.
    results: All measurements.
  """
  default = scaling_points.Point()
  speeds = {point: _speeds(results[point]) for point in choices
            if point in results}
  if default not in speeds:
    return None
  advice = advice_lib.choose(speeds, default)
  def row(point):
    return {"settings": list(point.settings), "threads": point.threads,
            "steps_per_second": _speeds(results[point])}
  return {"best": row(advice.best), "defaults_reach": advice.share,
          "ahead_in_every_round": advice.sure,
          "choices": [row(point) for point in speeds],
          "other_environments": [
              row(point) for point in others if point in results]}


def report(data: dict[str, Any]) -> str:
  """Return all findings as Markdown."""
  name, cores = data["config"], data["cores"]
  parts = [f"# Speed of `{name}` on {cores} cores", "Training steps per second,"
           " learning included: the median, the least and the most of "
           f"{data['repeats']} round(s). A star marks the config's own value."]
  if (spread := _spread(data)) > _NOISY:
    parts.append(f"The machine was noisy: the same settings differed by "
                 f"{spread:.0%} (median). Repeat this on an idle one.")
  for key, found in data["panels"].items():
    rows = []
    for point in found["points"]:
      star = " *" if point["x"] in found["own"] else ""
      rows.append([f"{point['x']}{star}", *_figures(point)])
    parts.append(tables.markdown(
        [LABELS[key], "steps/s", "least", "most"], rows))
  if data["memory"]:
    parts.append(memory_text(data["memory"]))
  if data["advice"]:
    parts += _advice(data["advice"], name)
  return "\n\n".join(parts) + "\n"


def memory_text(memory: dict[str, float]) -> str:
  """Return what an added environment needs, in words."""
  def mib(name):
    return f"{memory[name] / 2**20:.2f} MiB"
  texts = []
  if "training" in memory:
    texts.append(f"An added environment needs {mib('training')} of memory")
  if "simulator" in memory:
    texts.append(f"the simulator alone {mib('simulator')}")
  if len(texts) == 2:
    beyond = round((memory["training"] - memory["simulator"]) / 1024)
    amount = f"{beyond:,} KiB" if beyond > 0 else "nothing measurable"
    texts.append(f"{amount} beyond the simulator's own")
  text = ", ".join(texts)
  return f"{text[0].upper()}{text[1:]}."


def _advice(found: dict[str, Any], config: str) -> list[str]:
  def rows(points, note=""):
    return [[" ".join(point["settings"]) + note or "as it is",
             str(point["threads"] or "all"), *_figures(point)]
            for point in points]
  best = found["best"]
  advice = advice_lib.Advice(
      scaling_points.Point(tuple(best["settings"]), best["threads"]),
      found["defaults_reach"], found["ahead_in_every_round"])
  return [
      tables.markdown(
          ["settings", "threads", "steps/s", "least", "most"],
          [*rows(found["choices"]), *rows(found["other_environments"], " †")]),
      "† Learns differently, too; only for information.",
      advice_lib.describe(advice, config)]


def _spread(data: dict[str, Any]) -> float:
  """Return how much faster the fastest round is than the slowest, typically."""
  points = [point for panel in data["panels"].values()
            for point in panel["points"]]
  points += (data["advice"] or {}).get("choices", [])
  speeds = [point["steps_per_second"] for point in points]
  return statistics.median(
      [max(values) / min(values) - 1 for values in speeds] or [0.0])


def _figures(point: dict[str, Any]) -> list[str]:
  speeds = point["steps_per_second"]
  return [f"{value:,.0f}" for value in (
      statistics.median(speeds), min(speeds), max(speeds))]


def _speeds(measured: list[speed_lib.Speed]) -> list[float]:
  return [speed.steps_per_second for speed in measured]
