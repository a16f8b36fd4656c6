"""The live page of a real training process in a real browser.

The tests share one run, which the last tests stop and film.
"""

import re
import signal
import subprocess
import sys
import urllib.parse

import pytest

from agents.training.run_folder import checkpoint
from tests.reports import folders
from tests.support import browser, command

pytestmark = pytest.mark.slow

# Returns texts with a contrast below 4.5 (WCAG 2.1, success criterion 1.4.3),
# and colors of curves with a contrast below 3 (1.4.11).
_LOW_CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map(value => value / 255).map(
    value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
function background(node) {
  const [r, g, b, a] = rgba(getComputedStyle(node).backgroundColor);
  if (a === 255) return [r, g, b];
  const below = node.parentElement ? background(node.parentElement) : [255, 255, 255];
  return [r, g, b].map((value, index) => (value * a + below[index] * (255 - a)) / 255);
}
function contrast(node, color) {
  const both = [luminance(rgba(color)), luminance(background(node))].sort((a, b) => b - a);
  return (both[0] + 0.05) / (both[1] + 0.05);
}
const low = [];
for (const node of document.querySelectorAll("body *")) {
  const style = getComputedStyle(node);
  const text = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  if (text && node.checkVisibility() && !node.disabled) {
    const value = contrast(node, node.tagName === "text" ? style.fill : style.color);
    if (value < 4.5) low.push([node.textContent, value]);
  }
  if (node.tagName === "path" && contrast(node, style.stroke) < 3) low.push(["path", style.stroke]);
}
return low;
"""


@pytest.fixture(scope="module")
def training(tmp_path_factory):
  """Starts a run that takes hours; returns its process and the logdir."""
  logdir = tmp_path_factory.mktemp("logdir")
  folders.make(
    logdir / "20200101T000000-finished", [1.0, 3.0], sampled=[0.0, 2.0], warnings=["<b>Bad</b>"]
  )
  settings = {
    "env.id": "tests.live_page.task:Task",
    "env.kwargs": "{seconds: 0.001}",
    "env_processes": "false",
    "num_envs": 2,
    "algorithm.segment_length": 40,
    "algorithm.minibatch_size": 40,
    "algorithm.update_epochs": 1,
    "network.policy_layers": "[8]",
    "network.value_layers": "[8]",
    "stagger": "false",
    "env.max_length": 20,
    "eval_episodes": 1,
    **dict.fromkeys(("report_every", "eval_every", "checkpoint_every"), 160),
  }
  arguments = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
  process = command.start(
    "train.py",
    *("--config", "default", "--steps", "1e7", "--logdir", logdir, *arguments),
    cwd=logdir,
    variables={"PYTHONPATH": str(command.ROOT)},
  )
  try:
    browser.wait(lambda: process.poll() is not None or [*logdir.glob("*-default-*/metrics.jsonl")])
    yield process, logdir
  finally:
    process.kill()
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def url(training):
  """Returns the address that the command `watch` prints."""
  process = subprocess.Popen(
    [sys.executable, "-m", "agents", "watch", training[1]],
    cwd=command.ROOT,
    stdout=subprocess.PIPE,
    text=True,
  )
  with process:
    process.stdout.readline()
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def page(url):
  """Opens the page."""
  with browser.opened(url) as opened:
    browser.emulate(opened, "light")
    yield opened


def _text(page, selector):
  return page.find_element("css selector", selector).text


def _paths(page, chart):
  return page.find_elements("css selector", f"#{chart} path")


def _click(page, selector):
  page.execute_script("arguments[0].click()", page.find_element("css selector", selector))


def test_running_run_is_shown_with_curves_of_returns_and_reward_parts(page):
  browser.wait(lambda: _text(page, "#state") == "running")
  browser.wait(lambda: len(_paths(page, "return-chart")) == 2)
  browser.wait(lambda: len(_paths(page, "parts-chart")) == 2)
  legend = _text(page, "#parts-chart .legend")
  assert "move" in legend and "cost -20" in legend  # Of an episode of 20 steps.
  assert "tests.live_page.task:Task" in _text(page, "#facts")
  assert "stepping" in _text(page, "#time") and "%" in _text(page, "#time")
  assert _text(page, "#warnings") == "No warnings."


def test_curves_grow_while_the_run_goes_on(page):
  first = _paths(page, "return-chart")[0].get_attribute("d")
  steps = _text(page, "#facts")
  browser.wait(lambda: _text(page, "#facts") != steps)
  longer = browser.wait(
    lambda: page.execute_script("return document.querySelector('#return-chart path')?.outerHTML")
  )
  assert longer.count("L") > first.count("L")


def test_chart_shows_values_at_the_arrow_keys(page):
  frame = page.find_element("css selector", "#return-chart .chart")
  assert "Return from" in frame.get_attribute("aria-label")
  frame.send_keys("\ue011")  # Home.
  first = _text(page, "#return-chart .readout")
  assert re.match(r"160 steps", first)
  frame.send_keys("\ue014")  # Arrow right.
  assert int(re.match(r"(\d+)", _text(page, "#return-chart .readout"))[1]) > 160
  frame.send_keys("\ue00c")  # Escape.
  assert _text(page, "#return-chart .readout") == ""


def test_runs_are_selected_and_compared_with_the_keyboard(page):
  page.find_element("css selector", "#runs input[type=radio]:checked").send_keys("\ue015")
  browser.wait(lambda: _text(page, "#run-name") == "20200101T000000-finished")
  browser.wait(lambda: _text(page, "#state") == "finished")
  browser.wait(lambda: len(_paths(page, "return-chart")) == 4)
  # Texts of runs never become markup.
  assert _text(page, "#warnings") == "Step 200: <b>Bad</b>"
  assert "no reward parts" in _text(page, "#parts-chart")
  assert not page.find_element("id", "stop-button").is_displayed()
  # The checkbox of the selected run is a tab stop.
  checkbox = page.find_element("css selector", "#runs input[type=checkbox][tabindex='0']")
  checkbox.send_keys(" ")
  browser.wait(lambda: len(_paths(page, "return-chart")) == 2)
  checkbox.send_keys(" ")
  browser.wait(lambda: len(_paths(page, "return-chart")) == 4)


def test_horizontal_axis_can_be_minutes(page):
  _click(page, "[name=axis][value=minutes]")
  label = page.find_element("css selector", "#return-chart .chart").get_attribute("aria-label")
  assert "minutes" in label
  _click(page, "[name=period][value=all]")
  assert "stepping 50 %" in _text(page, "#time")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_curves_have_enough_contrast(page, scheme):
  browser.emulate(page, scheme)
  background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
  assert (int(re.search(r"\d+", background)[0]) < 128) == (scheme == "dark")
  assert page.execute_script(_LOW_CONTRAST) == []


def test_narrow_windows_need_no_horizontal_scrolling(page):
  browser.emulate(page, "light", width=400)
  browser.wait(
    lambda: page.execute_script("return document.querySelector('svg').clientWidth") < 400
  )
  assert page.execute_script("return document.documentElement.scrollWidth") <= 400
  browser.emulate(page, "light")


def test_stop_and_save_ends_the_training_process_with_a_checkpoint(page, training):
  process, logdir = training
  page.find_element("css selector", "#runs input[type=radio]:checked").send_keys("\ue013")
  stop = page.find_element("id", "stop-button")
  browser.wait(stop.is_displayed)
  stop.send_keys("\ue007")
  page.switch_to.active_element.send_keys("\ue007")  # Continues training.
  browser.wait(lambda: not page.find_element("id", "stop-dialog").is_displayed())
  assert process.poll() is None
  stop.send_keys("\ue007")
  page.switch_to.active_element.send_keys("\ue004")  # Tab.
  page.switch_to.active_element.send_keys("\ue007")
  assert process.wait(timeout=20) == 128 + signal.SIGTERM
  browser.wait(lambda: _text(page, "#state") == "stopped")
  (run,) = logdir.glob("*-default-*")
  assert f"python -m agents train {run}" in _text(page, "#facts")
  saved = checkpoint.step_of(checkpoint.newest(run / "checkpoints"))
  assert saved >= command.rows(run)[-1]["step"]


def test_film_of_an_episode_appears_and_can_be_played_and_searched(page):
  assert "No film yet" in _text(page, "#film")
  page.find_element("id", "film-button").send_keys("\ue007")
  browser.wait(lambda: _text(page, "#film-button") == "Filming …", 10)
  browser.wait(lambda: page.find_elements("css selector", "#film video"))
  browser.wait(lambda: page.execute_script("return document.querySelector('video').readyState > 1"))
  page.execute_script("document.querySelector('video').currentTime = 1")
  browser.wait(
    lambda: page.execute_script(
      "const v = document.querySelector('video'); return v.currentTime === 1 && !v.seeking"
    )
  )
  page.execute_async_script("document.querySelector('video').play().then(arguments[0])")
  assert re.search(r"training-episode-\d+.mp4", _text(page, "#film"))


def test_reason_is_shown_if_a_film_fails(page):
  page.find_element("css selector", "#runs input[type=radio]:checked").send_keys("\ue015")
  browser.wait(lambda: _text(page, "#run-name") == "20200101T000000-finished")
  page.find_element("id", "film-button").send_keys("\ue007")
  browser.wait(lambda: "checkpoint" in _text(page, "#error"))


def test_page_causes_no_console_messages_and_requests_only_its_server(page, url):
  assert page.get_log("browser") == []
  urls = browser.requested_urls(page)
  assert len(urls) > 10
  assert all(each.startswith((url, "data:")) for each in urls)


def test_page_without_the_token_is_refused(url):
  port = urllib.parse.urlsplit(url).port
  with browser.opened(f"http://127.0.0.1:{port}/") as other:
    assert "Access denied" in other.find_element("css selector", "body").text
