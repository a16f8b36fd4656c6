import pathlib
import re

from agents import configs
from agents.commands import list_configs

_README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()


def test_table_has_a_row_and_a_description_for_each_config():
  table = list_configs.table()
  header, *groups, _ = table.split("\n\n")
  titles = [group.splitlines()[0] for group in groups]
  lines = [line for group in groups for line in group.splitlines()[1:]]
  rows, descriptions = lines[::2], lines[1::2]
  assert header.split() == ["config", "task", "steps", "score", "minutes"]
  assert titles == [
    "Any task, with --set env.id=ID",
    "MuJoCo",
    "Classic control",
    "DeepMind Control",
    "Atari",
  ]
  assert sorted(row.split()[0] for row in rows) == configs.names()
  assert all(line.startswith("    ") for line in descriptions)
  assert max(map(len, table.splitlines())) <= 120
  (cheetah,) = (row for row in rows if row.startswith("cheetah"))
  _, expected = configs.about("cheetah")
  assert cheetah.split() == [
    "cheetah",
    "HalfCheetah-v5",
    "1,000,000",
    f"{expected.score:g}",
    "±",
    f"{expected.std:g}",
    f"{expected.minutes:g}",
  ]
  assert descriptions[rows.index(cheetah)].strip() == (
    "never falls, so all episodes last 1000 steps."
  )


def test_expected_scores_equal_the_table_in_the_readme():
  rows = re.findall(
    r"^\| `(\w+)`[^|]*\| (\d+) \| ([-\d.]+)(?: ± ([\d.]+))? \|", _README, re.MULTILINE
  )
  results = {name: configs.about(name)[1] for name in configs.names()}
  results = {
    name: (expected.score, expected.std, expected.seeds)
    for name, expected in results.items()
    if expected
  }
  assert results == {
    name: (float(score), float(std) if std else None, int(seeds))
    for name, seeds, score, std in rows
  }
