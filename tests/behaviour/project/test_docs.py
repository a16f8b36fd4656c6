"""docs/algorithm.md quotes the current code and lists every option."""

import dataclasses
import pathlib
import re

import pytest
import yaml
from agents.configs import presets

from agents import config as config_lib
from agents import configs

_ROOT = pathlib.Path(__file__).parents[3]
_TEXT = (_ROOT / "docs" / "algorithm.md").read_text()
_QUOTES = re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)```$", _TEXT,
                     re.MULTILINE | re.DOTALL)


def test_every_code_block_is_preceded_by_the_name_of_a_file():
  assert len(_QUOTES) == _TEXT.count("```python") > 15


@pytest.mark.parametrize(
    "path, quote", _QUOTES, ids=[quote.split("\n")[0] for _, quote in _QUOTES])
def test_lines_of_a_code_block_occur_in_the_file_in_order(path, quote):
  lines = [line.strip() for line in (_ROOT / path).read_text().split("\n")]
  position = 0
  for line in map(str.strip, quote.strip().split("\n")):
    assert line in lines[position:], f"{path} has no such line: {line}"
    position = lines.index(line, position) + 1


def _rows(section: str) -> dict[str, list[str]]:
  """Returns the cells of the table of a config section, by option name."""
  rows = {}
  table = _TEXT.split(f"| `{section}.` |")[1].split("\n\n")[0]
  for line in table.split("\n")[2:]:
    names, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    for name in names.split(","):
      rows[name.strip(" `")] = cells
  return rows


@pytest.mark.parametrize("section", ["algorithm", "network"])
def test_table_states_defaults_source_and_reason_of_every_option(section):
  rows = _rows(section)
  defaults = getattr(config_lib.Config(), section)
  paper = getattr(presets.apply(
      "paper", configs.load("walker")[1]), section)
  assert list(rows) == [field.name for field in dataclasses.fields(defaults)]
  for name, (default, paper_value, source, reason) in rows.items():
    assert _parse(default) == getattr(defaults, name), name
    assert _parse(paper_value.split(";")[0]) == getattr(paper, name), name
    assert source and reason


def test_cited_sources_are_exactly_the_listed_sources():
  text = re.sub(r"```.*?```", "", _TEXT, flags=re.DOTALL)
  cited, listed = text.split("## Sources")
  names = set(re.findall(r"\[([A-Za-z]+)\](?!\()", cited))
  assert names == set(re.findall(r"^- \[(\w+)\]:", listed, re.MULTILINE))


def _parse(cell: str):
  """Returns the value that a cell of a table contains."""
  if "," in cell:
    return tuple(int(number) for number in cell.split(","))
  value = yaml.safe_load(cell)
  try:
    # PyYAML reads numbers such as 1e-3 as texts.
    return float(value) if isinstance(value, str) else value
  except ValueError:
    return value
