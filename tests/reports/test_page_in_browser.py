"""The report works in a browser."""

import pytest

from agents.reports import page, results
from tests.reports import folders
from tests.support import browser

pytestmark = pytest.mark.slow

_NUM_ENVS = 100, 2, 10


@pytest.fixture(scope="module")
def path(tmp_path_factory):
  """Returns the file of a report on three groups."""
  folder = tmp_path_factory.mktemp("report")
  runs = [
    results.read(
      folders.make(
        folder / f"{num_envs}{seed}-cheetah",
        [float(num_envs + seed)],
        {"num_envs": num_envs, "seed": seed},
      )
    )
    for num_envs in _NUM_ENVS
    for seed in range(2)
  ]
  path = folder / "report.html"
  path.write_text(page.page(results.group(runs), "Report"))
  return path


@pytest.fixture(scope="module")
def report(path):
  """Returns the open report."""
  with browser.opened(path.as_uri()) as report:
    yield report


def _evaluate(report, expression):
  return report.execute_script(f"return {expression}")


def _press_enter(report, script):
  """Presses Enter on the element that a script selects."""
  _evaluate(report, script).send_keys("\ue007")


def test_enter_on_a_header_sorts_settings_as_numbers(report):
  def state(column):
    return _evaluate(
      report,
      f"[...document.querySelectorAll('#settings tbody tr')].map(row => "
      f"row.cells[{column}].textContent)",
    ), _evaluate(
      report,
      "[...document.querySelectorAll('#settings th[scope=col]')].map(each => "
      "each.getAttribute('aria-sort'))",
    )

  assert state(2) == (["10", "100", "2"], [None, None, None])  # In the order of labels.
  _press_enter(report, "document.querySelectorAll('#settings button')[2]")
  assert state(2) == (["2", "10", "100"], [None, None, "ascending"])
  report.switch_to.active_element.send_keys("\ue007")
  assert state(2) == (["100", "10", "2"], [None, None, "descending"])
  _press_enter(report, "document.querySelectorAll('#settings button')[0]")
  assert state(0) == (
    [f"HalfCheetah-v5: cheetah, num_envs={number}" for number in (10, 100, 2)],
    ["ascending", None, None],
  )


def test_permalinks_lead_to_figures_and_tables_and_load_nothing(report, path):
  for name in ("curves", "scores", "improvement"):
    target = f"HalfCheetah-v5-{name}"
    _press_enter(report, f"document.querySelector('[href=\"#{target}\"]')")
    assert _evaluate(report, "location.hash") == f"#{target}"
    assert _evaluate(report, "document.querySelector(':target').tagName") == "FIGURE"
    assert _evaluate(report, "document.activeElement.checkVisibility()")
  assert {url.partition("#")[0] for url in browser.requested_urls(report)} == {path.as_uri()}


def test_page_and_figures_follow_the_color_scheme_of_the_browser(report):
  colors = {}
  for scheme in ("light", "dark"):
    browser.emulate(report, scheme)
    colors[scheme] = [
      sum(map(int, _evaluate(report, f"getComputedStyle({element}).{color}.match(/\\d+/g)")))
      for element, color in (
        ("document.body", "backgroundColor"),
        ("document.body", "color"),
        ("document.querySelector('svg text')", "fill"),
        ("document.querySelector('tbody th')", "backgroundColor"),
      )
    ]
  bright, dark = 3 * 230, 3 * 25
  background, text, label, cell = colors["light"]
  assert min(background, cell) > bright and max(text, label) < dark
  background, text, label, cell = colors["dark"]
  assert max(background, cell) < dark and min(text, label) > bright
