"""docs/algorithm.md includes the current code and lists every option."""

import dataclasses
import pathlib
import re
import runpy

import pytest
import yaml
from agents.configs import presets

from agents import config as config_lib
from agents import configs

_ROOT = pathlib.Path(__file__).parents[3]
_TEXT = (_ROOT / "docs" / "algorithm.md").read_text()
# Link text, link target, included file and section of each code block.
_INCLUDES = re.findall(
  r"^\[`([\w/]+\.py)`\]\(\.\./([\w/]+\.py)\):\n\n"
  r'```python\n--8<-- "([\w/]+\.py):(\w+)"\n```$',
  _TEXT,
  re.MULTILINE,
)


def test_every_code_block_is_an_include_below_a_link_to_its_file():
  assert len(_INCLUDES) == _TEXT.count("```python") > 15
  for name, target, path, _ in _INCLUDES:
    assert name == target == path


@pytest.mark.parametrize(
  "path, section",
  [include[2:] for include in _INCLUDES],
  ids=[":".join(include[2:]) for include in _INCLUDES],
)
def test_included_section_contains_code(path, section):
  lines = [line.strip() for line in (_ROOT / path).read_text().splitlines()]
  markers = [f"# --8<-- [{end}:{section}]" for end in ("start", "end")]
  assert [lines.count(marker) for marker in markers] == [1, 1]
  start, end = map(lines.index, markers)
  assert any(line and not line.startswith("#") for line in lines[start:end])


def test_pages_include_every_section_of_the_sources():
  included = {
    include
    for page in (_ROOT / "docs").glob("**/*.md")
    for include in re.findall(
      r'^\s*--8<-- "([\w/]+\.py):([\w-]+)"$', page.read_text(), re.MULTILINE
    )
  }
  sections = {
    (str(path.relative_to(_ROOT)), name)
    for folder in ("agents", "configs", "benchmarks")
    for path in (_ROOT / folder).glob("**/*.py")
    for name in re.findall(r"--8<-- \[\w+:([\w-]+)\]", path.read_text())
  }
  assert included == sections


def test_page_of_settings_equals_the_fields_of_the_config():
  generate = runpy.run_path(str(_ROOT / "docs" / "hooks.py"))["configuration"]
  page = (_ROOT / "docs" / "configuration.md").read_text()
  assert page == generate(), "Run `python docs/hooks.py`."
  keys = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
  assert sorted(keys) == sorted(config_lib.flat(config_lib.Config()))


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
  paper = getattr(presets.apply("paper", configs.load("walker")[1]), section)
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
