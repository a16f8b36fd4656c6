"""Builds tables that compare groups by their probability of improvement."""

import collections
import html
import itertools
from collections.abc import Sequence

import numpy as np

from agents.reports import elements, improvement, results


def on_task(groups: Sequence[results.RunGroup], names: dict[str, str]) -> str:
  """Compares the groups of a task.

  Args:
    groups: Groups of runs on the same task.
    names: Names of the groups in HTML, by label.

  Returns:
    HTML figure; "" if fewer than two groups have two runs with scores.
  """
  return _matrix(
    "Probability that a run of the group in the row has a higher last score (mean action) than a "
    "run of the group in the column.",
    [improvement.scores(groups)],
    names,
    groups[0].task,
  )


def over_tasks(groups: Sequence[results.RunGroup]) -> str:
  """Compares groups that have the same name on several tasks.

  Args:
    groups: Groups of runs, sorted by task.

  Returns:
    HTML section; "" if no two groups have two runs with scores on two tasks.
  """
  tasks = [
    improvement.variants(list(members))
    for _, members in itertools.groupby(groups, lambda group: group.task)
  ]
  counts = collections.Counter(name for task in tasks for name in task)
  names = {
    name: html.escape(name.lstrip("-, ") or "base") for name, count in counts.items() if count > 1
  }
  table = _matrix(
    "Mean of the probabilities over the tasks that both groups have. The names are labels of "
    "groups without the words that all groups of a task have in common.",
    [{name: task[name] for name in names if name in task} for task in tasks],
    names,
    "tasks",
  )
  return f"{elements.heading('All tasks', 'tasks')}\n{table}" if table else ""


def _matrix(
  caption: str, tasks: list[dict[str, np.ndarray]], names: dict[str, str], anchor: str
) -> str:
  """Returns a table with one row and one column per group, "" without pairs.

  Args:
    caption: Description of the probability, in HTML.
    tasks: Scores, see `improvement.pairs`.
    names: Names of groups in HTML, by their names in `tasks`.
    anchor: Start of the id.
  """
  found = improvement.pairs(tasks)
  if not found:
    return ""
  compared = [name for name in names if any(name in pair for pair in found)]

  def cell(pair: tuple[str, str]) -> str:
    if pair not in found:
      return "-"
    text = "{:.2f} [{:.2f}, {:.2f}]".format(*found[pair])
    return f"<b>{text}</b>" if found[pair].low > 0.5 else text

  return elements.figure(
    f"{caption} Ties count one half. Brackets contain the 95&nbsp;% bootstrap interval, which is "
    "above one half in bold cells.",
    elements.table(
      ["", *(names[name] for name in compared)],
      ([names[x], *(cell((x, y)) for y in compared)] for x in compared),
    ),
    anchor,
    "improvement",
  )
