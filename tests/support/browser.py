"""Opens pages in Chromium, which tests control by the DevTools protocol."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(not _CHROMIUM, reason="Chromium is not installed.")


class Page:
  """A page in the browser.

  Attributes:
    requests: URLs that the page has requested.

  Args:
    commands: File to write commands to.
    answers: File to read answers and events from.
  """

  def __init__(self, commands, answers):
    self._commands, self._answers = commands, answers
    self._ids = itertools.count()
    self._session: dict[str, str] = {}
    self.requests: list[str] = []
    target = self.call("Target.createTarget", url="about:blank")["targetId"]
    session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    self._session = {"sessionId": session}
    self.call("Network.enable")
    self.call("Page.enable")

  def call(self, method: str, **params: Any) -> dict[str, Any]:
    """Calls a method of the DevTools protocol, and returns its result."""
    number = next(self._ids)
    message = {"id": number, "method": method, "params": params, **self._session}
    self._commands.write(json.dumps(message).encode() + b"\0")
    self._commands.flush()
    while (answer := self._read()).get("id") != number:
      pass
    assert "error" not in answer, answer
    return answer["result"]

  def open(self, path: pathlib.Path):
    """Opens a file, and waits until it is loaded."""
    self.call("Page.navigate", url=path.as_uri())
    while self._read().get("method") != "Page.loadEventFired":
      pass

  def evaluate(self, script: str) -> Any:
    """Returns the value of a JavaScript expression."""
    answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")

  def press_enter(self):
    """Presses the key Enter in the element that has the focus."""
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    self.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
    self.call("Input.dispatchKeyEvent", type="keyUp", **key)

  def _read(self) -> dict[str, Any]:
    text = bytearray()
    while (byte := self._answers.read(1)) != b"\0":
      assert byte, "The browser has ended."
      text += byte
    message = json.loads(text)
    if message.get("method") == "Network.requestWillBeSent":
      self.requests.append(message["params"]["request"]["url"])
    return message


@contextlib.contextmanager
def opened() -> Iterator[Page]:
  """Context that provides an empty page of a new browser."""
  command_reader, command_writer = os.pipe()
  answer_reader, answer_writer = os.pipe()
  # Chromium reads commands from descriptor 3, and writes answers to 4.
  redirected = f'exec "$0" "$@" 3<&{command_reader} 4>&{answer_writer}'
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    options = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe"]
    process = subprocess.Popen(
      ["bash", "-c", redirected, str(_CHROMIUM), *options, f"--user-data-dir={profile}"],
      pass_fds=(command_reader, answer_writer),
      stderr=subprocess.DEVNULL,
    )
    os.close(command_reader)
    os.close(answer_writer)
    try:
      with os.fdopen(command_writer, "wb") as commands, os.fdopen(answer_reader, "rb") as answers:
        page = Page(commands, answers)
        yield page
        page.call("Page.close")
    finally:
      process.terminate()
      process.wait(30)
