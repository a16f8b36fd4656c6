import json
import re

import gymnasium
import pytest

from agents import configs
from agents.commands import list as list_lib


def test_table_has_a_row_and_a_description_for_each_config():
  table = list_lib.table(list_lib.find())
  header, *groups, _ = table.split("\n\n")
  titles = [group.splitlines()[0] for group in groups]
  lines = [line for group in groups for line in group.splitlines()[1:]]
  rows, descriptions = lines[::2], lines[1::2]
  assert re.split(" {2,}", header) == (
    ["config", "task", "steps", "IQM [95 %]", "worst", "reached", "minutes"]
  )
  assert titles == [
    "Any task, with --set env.id=ID",
    "MuJoCo",
    "Classic control",
    "Legged robots",
    "EnvPool",
    "DeepMind Control",
    "Atari",
  ]
  assert sorted(row.split()[0] for row in rows) == configs.names()
  assert all(line.startswith("    ") for line in descriptions)
  assert max(map(len, table.splitlines())) <= 120
  (standup,) = (row for row in rows if row.startswith("humanoid_standup"))
  assert "161909 [161909, 161909]" in standup
  (cheetah,) = (row for row in rows if row.startswith("cheetah"))
  _, expected = configs.about("cheetah")
  assert re.split(" {2,}", cheetah) == [
    *("cheetah", "HalfCheetah-v5", "1,000,000"),
    f"{expected.iqm:.4g} [{expected.interval[0]}, {expected.interval[1]}]",
    f"{min(expected.scores):g}",
    "100 %",
    f"{expected.minutes:g}",
  ]
  assert descriptions[rows.index(cheetah)].strip() == (
    "never falls, so all episodes last 1000 steps."
  )


def test_families_are_those_of_gymnasium_and_of_the_ids():
  for row in list_lib.find():
    if row.family in ("MuJoCo", "Classic control"):
      _, _, package, *_ = str(gymnasium.spec(row.task).entry_point).split(".")
      assert row.family.lower().replace(" ", "_") == package


def test_json_has_the_measured_results(capsys):
  assert list_lib.main(["--json"]) == 0
  rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["configs"]}
  assert sorted(rows) == configs.names()
  _, expected = configs.about("cheetah")
  cheetah = rows["cheetah"]
  assert (cheetah["task"], cheetah["steps"]) == ("HalfCheetah-v5", 1_000_000)
  assert cheetah["results"]["scores"] == list(expected.scores)
  assert cheetah["results"]["iqm"] == expected.iqm
  assert cheetah["results"]["published"]["score"] == 5819
  assert rows["default"]["results"] is None


@pytest.mark.parametrize(
  "scores, iqm", [([5], 5), ([1, 2], 1.5), ([9, 2, 4, 3, 0], 3), (range(8), 3.5)]
)
def test_interquartile_mean_leaves_out_the_lowest_and_the_highest_quarter(scores, iqm):
  assert configs.Expected(tuple(scores), (0, 0), 1).iqm == iqm
