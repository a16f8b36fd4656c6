import itertools
import re

from agents.reports import improvement_tables, results
from tests.reports import folders


def _groups(path, *scores):
  """Returns groups with one run per score; `scores` contains tuples by task."""
  runs = []
  for task, scores_of_task in zip(("cheetah", "hopper"), scores):
    for epochs, scores_of_group in enumerate(scores_of_task, 1):
      for seed, score in enumerate(scores_of_group):
        folder = path / task / f"{epochs}{seed}-{task}"
        changes = {"env.id": f"{task}-v5", "algorithm.update_epochs": epochs, "seed": seed}
        runs.append(results.read(folders.make(folder, [0.0, score], changes)))
  return results.group(runs)


def _cells(text):
  """Returns the texts of the cells of all rows."""
  rows = re.findall("<tr>(.*?)</tr>", text)
  return [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_table_compares_all_groups_with_two_runs(tmp_path):
  groups = _groups(tmp_path, [(3.0, 4.0), (1.0, 3.0), (9.0,)])
  names = {group.label: f"group {number}" for number, group in enumerate(groups)}
  text = improvement_tables.on_task(groups, names)
  assert 'id="cheetah-v5-improvement"' in text
  header, first, second = _cells(text)
  assert header == ["", "group 0", "group 1"]
  # Three wins and one tie in four pairs.
  assert first[:2] == ["group 0", "-"] and first[2].startswith("0.88 [")
  assert second[0] == "group 1" and second[1].startswith("0.12 [")


def test_bold_intervals_are_above_one_half(tmp_path):
  groups = _groups(tmp_path, [(3.0, 4.0), (1.0, 2.0), (1.0, 5.0)])
  text = improvement_tables.on_task(groups, {group.label: "" for group in groups})
  bold = {cell for cell in itertools.chain(*_cells(text)) if "<b>" in cell}
  assert bold == {"<b>1.00 [1.00, 1.00]</b>"}


def test_table_over_tasks_averages_the_probabilities(tmp_path):
  groups = _groups(tmp_path, [(3.0, 4.0), (1.0, 2.0)], [(10.0, 30.0), (20.0, 40.0)])
  header, first, second = _cells(improvement_tables.over_tasks(groups))
  assert header == ["", "update_epochs=1", "update_epochs=2"]
  assert first[2].startswith("0.62 [")  # Mean of 1 and 0.25.
  assert second[1].startswith("0.38 [")


def test_groups_without_a_second_run_or_a_common_task_have_no_table(tmp_path):
  groups = _groups(tmp_path, [(3.0, 4.0), (1.0,)], [(1.0, 2.0), (3.0,)])
  names = {group.label: "" for group in groups}
  assert improvement_tables.on_task(groups[:2], names) == ""
  assert improvement_tables.over_tasks(groups) == ""
