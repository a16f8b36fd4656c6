"""A real browser without a window."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator

import pytest

_BROWSERS = "chromium", "chromium-browser", "google-chrome"


@contextlib.contextmanager
def opened(url: str) -> Iterator:
  """Opens a page in Chromium, and yields Selenium's driver.

  Skips the test if Chromium, its driver or Selenium is not installed.
  """
  webdriver = pytest.importorskip("selenium.webdriver")
  program = next(filter(None, map(shutil.which, _BROWSERS)), None)
  driver = shutil.which("chromedriver")
  if not (program and driver):
    pytest.skip("Chromium or its driver is not installed.")
  options = webdriver.ChromeOptions()
  options.binary_location = program
  options.add_argument("--headless=new")
  options.add_argument("--disable-dev-shm-usage")
  if os.geteuid() == 0:  # Chromium has no sandbox for root.
    options.add_argument("--no-sandbox")
  options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
  page = webdriver.Chrome(options, webdriver.ChromeService(driver))
  try:
    page.get(url)
    yield page
  finally:
    page.quit()


def emulate(page, scheme: str, width: int = 1200) -> None:
  """Sets the color scheme ("light" or "dark") and the width of the window."""
  media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
  page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
  size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
  page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def wait(condition: Callable, seconds: float = 120.0):
  """Waits until a function returns a true value, and returns this value."""
  deadline = time.monotonic() + seconds
  while not (value := condition()):
    assert time.monotonic() < deadline, "The page did not change."
    time.sleep(0.05)
  return value


def requested_urls(page) -> list[str]:
  """Returns the addresses that the page has requested since the last call."""
  messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
  return [
    message["params"]["request"]["url"]
    for message in messages
    if message["method"] == "Network.requestWillBeSent"
  ]
