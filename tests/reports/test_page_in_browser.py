"""The report works in a browser."""

import pytest

from agents.reports import page, results
from tests.reports import folders
from tests.support import browser

pytestmark = [pytest.mark.slow, browser.needs_chromium]

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
  with browser.opened() as report:
    report.open(path)
    yield report


def test_enter_on_a_header_sorts_settings_as_numbers(report):
  def state(column):
    return report.evaluate(
      f"[...document.querySelectorAll('#settings tbody tr')].map(row => "
      f"row.cells[{column}].textContent)"
    ), report.evaluate(
      "[...document.querySelectorAll('#settings th[scope=col]')].map(each => "
      "each.getAttribute('aria-sort'))"
    )

  assert state(2) == (["10", "100", "2"], [None, None, None])  # In the order of labels.
  report.evaluate("document.querySelectorAll('#settings button')[2].focus()")
  report.press_enter()
  assert state(2) == (["2", "10", "100"], [None, None, "ascending"])
  report.press_enter()
  assert state(2) == (["100", "10", "2"], [None, None, "descending"])
  report.evaluate("document.querySelectorAll('#settings button')[0].focus()")
  report.press_enter()
  assert state(0) == (
    [f"HalfCheetah-v5: cheetah, num_envs={number}" for number in (10, 100, 2)],
    ["ascending", None, None],
  )


def test_permalinks_lead_to_figures_and_tables_and_load_nothing(report, path):
  for name in ("curves", "scores", "improvement"):
    target = f"HalfCheetah-v5-{name}"
    report.evaluate(f"document.querySelector('[href=\"#{target}\"]').focus()")
    report.press_enter()
    assert report.evaluate("location.hash") == f"#{target}"
    assert report.evaluate("document.querySelector(':target').tagName") == "FIGURE"
    assert report.evaluate("document.activeElement.checkVisibility()")
  assert {url.partition("#")[0] for url in report.requests} == {path.as_uri()}


def test_page_and_figures_follow_the_color_scheme_of_the_browser(report):
  colors = {}
  for scheme in ("light", "dark"):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    report.call("Emulation.setEmulatedMedia", features=[feature])
    colors[scheme] = [
      sum(map(int, report.evaluate(f"getComputedStyle({element}).{color}.match(/\\d+/g)")))
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
