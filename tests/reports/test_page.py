"""The report is one HTML page without references to other files.

`test_page_in_browser` tests the same page in a browser.
"""

import csv
import html.parser
import io
import json
import re
import xml.etree.ElementTree

import pytest

from agents.reports import page, results
from tests.reports import folders

_VOID = {"meta", "br", "hr", "img", "link", "input"}


class _ParsedPage(html.parser.HTMLParser):
  """Parses a page, rejects unbalanced tags and collects texts by tag."""

  def __init__(self, text):
    super().__init__()
    self.open, self.texts, self.ids, self.links = [], [], [], []
    self.feed(text)
    assert not self.open, self.open

  def handle_starttag(self, tag, attrs):
    if tag not in _VOID:
      self.open.append(tag)
    for name, value in attrs:
      if name == "id":
        self.ids.append(value)
      if name in ("src", "href", "xlink:href") and value:
        self.links.append(value)

  def handle_startendtag(self, tag, attrs):
    self.handle_starttag(tag, attrs)
    if tag not in _VOID:
      self.open.pop()

  def handle_endtag(self, tag):
    assert self.open and self.open.pop() == tag, tag

  def handle_data(self, data):
    if data.strip():
      self.texts.append((self.open[-1] if self.open else "", data.strip()))


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
  logdir = tmp_path_factory.mktemp("logdir")
  runs = [
    folders.make(
      logdir / f"{seed}-cheetah",
      [1000.0, 2000.0 + seed * 1000],
      {"seed": seed, "steps": 1_000_000},
      sampled=[900.0, 1800.0],
    )
    for seed in range(3)
  ]
  runs.append(
    folders.make(
      logdir / "4-hopper",
      [5.0, 6.0],
      {"env.id": "Hopper-v5"},
      sampled=[None, 4.0],
      warnings=["Too <wild>."],
    )
  )
  runs.append(folders.make(logdir / "5-hopper", [7.0], {"env.id": "Hopper-v5", "num_envs": 2}))
  return results.group([results.read(path) for path in runs])


@pytest.fixture(scope="module")
def text(groups):
  return page.page(groups, "Runs of <all>")


def test_page_is_well_formed_and_references_no_other_file(text):
  checked = _ParsedPage(text)
  assert len(checked.ids) == len(set(checked.ids)) > 20
  local = {f"#{name}" for name in checked.ids}
  assert checked.links and set(checked.links) <= local
  assert set(re.findall(r"url\((#[^)]*)\)", text)) <= local
  assert "@import" not in text and "fetch(" not in text
  for url in re.findall(r"https?://[^\"' <]+", text):
    assert "www.w3.org" in url, url  # XML namespaces, not links.


def test_each_heading_figure_and_table_has_a_permalink(text):
  checked = _ParsedPage(text)
  names = re.findall(r'<(?:h2|figure) id="([^"]*)">', text)
  assert names == [
    "HalfCheetah-v5",
    "HalfCheetah-v5-curves",
    "HalfCheetah-v5-scores",
    "Hopper-v5",
    "Hopper-v5-curves",
    "Hopper-v5-scores",
    "differences",
    "settings",
    "speed",
    "speed-table",
    "warnings",
  ]
  links = [link for link in checked.links if link.removeprefix("#") in names]
  assert links == [f"#{name}" for name in names]
  assert text.count("<svg") + text.count("<table") == text.count("<figure")


def test_page_supports_light_and_dark_color_schemes(text):
  assert "color-scheme: light dark" in text
  figures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
  assert len(figures) == 2
  for figure in figures:
    xml.etree.ElementTree.fromstring(figure)
    assert "currentColor" in figure
    colors = set(re.findall(r"(?:fill|stroke): (#\w+)", figure))
    assert colors and not colors & {"#000000", "#ffffff", "#010203"}


def test_tables_show_scores_seeds_speed_and_published_scores(text):
  cells = [content for tag, content in _ParsedPage(text).texts if tag in ("td", "th")]
  assert "0, 1, 2" in cells
  assert "3,000 ± 1,000" in cells  # Mean of 2000, 3000, 4000.
  assert any(cell.startswith("3,000 [2,") for cell in cells)
  assert "5,819 after 1M (SB3 zoo, v3, 1 run)" in cells
  assert "7 ± 1" not in cells and "6" in cells and "cheetah" in cells
  # Speed, limit, their ratio, and two shares of the time.
  assert {"1,000", "2,000", "0.50", "50%", "20%"} <= set(cells)


def test_page_shows_differing_settings_and_warnings(text):
  texts = [content for _, content in _ParsedPage(text).texts]
  assert "Settings that differ" in texts and "num_envs" in texts
  assert "algorithm.discount" not in texts
  assert any("Too <wild>." in content for content in texts)
  assert "Runs of <all>" in texts


def test_times_below_an_hour_are_in_minutes(tmp_path):
  for seconds, axis, cell in (
    (72, "minutes", "1.2 min"),
    (3599, "minutes", "60 min"),
    (7200, "hours", "2 h"),
  ):
    path = folders.make(tmp_path / cell, [1.0, 2.0])
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    factor = seconds / rows[-1]["seconds"]
    (path / "metrics.jsonl").write_text(
      "".join(json.dumps({**row, "seconds": factor * row["seconds"]}) + "\n" for row in rows)
    )
    texts = _ParsedPage(page.page(results.group([results.read(path)]), "Time")).texts
    assert ("td", cell) in texts
    assert f"{axis} of wall-clock time" in [content for _, content in texts]


def test_page_shows_the_number_of_incomplete_runs(text):
  assert "Incomplete runs: 3." in text


def test_page_of_one_group_has_no_settings_that_differ(groups):
  (hopper,) = (group for group in groups if group.runs[0].path.name == "4-hopper")
  one_group = page.page([hopper], "One")
  _ParsedPage(one_group)
  assert "1 run, " in one_group and "Settings that differ" not in one_group
  assert "Warnings" in one_group and "Too &lt;wild&gt;." in one_group
  without_warnings = page.page([groups[0]], "None")
  assert "Warnings" not in without_warnings


def test_csv_contains_all_scores(groups):
  rows = list(csv.DictReader(io.StringIO(page.points(groups))))
  assert len(rows) == 3 * 4 + 3 + 1
  last = [row for row in rows if row["actions"] == "mean" and row["seed"] == "2"][-1]
  assert last == {
    "task": "HalfCheetah-v5",
    "group": "cheetah",
    "seed": "2",
    "run": "2-cheetah",
    "actions": "mean",
    "step": "200",
    "hours": "0.020000",
    "episodes": "2",
    "return": "4000",
  }
