import re
import signal
import socket
import urllib.request

import pytest

from agents.commands import watch
from tests.reports import folders
from tests.support import command


def test_address_shows_the_page_until_a_signal_ends_the_server(tmp_path):
  folders.make(tmp_path / "1-cheetah", [1.0])
  process = command.start_interpreter("agents/__main__.py", "watch", tmp_path, cwd=command.ROOT)
  with process:
    assert str(tmp_path) in process.stdout.readline()
    url = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", url)
    with urllib.request.urlopen(f"{url}runs") as answer:
      assert b"1-cheetah" in answer.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    assert process.stdout.read() == ""  # Without a log of the requests.


def test_missing_folders_and_used_ports_are_reported_in_one_line(tmp_path, capsys):
  with socket.create_server(("127.0.0.1", 0)) as used:
    for args, message in (
      ([str(tmp_path / "x")], "x: there is no such folder."),
      ([str(tmp_path), "--port", str(used.getsockname()[1])], "Select another port"),
      ([str(tmp_path), "--port", "99999"], "Select another port"),
    ):
      with pytest.raises(SystemExit) as error:
        watch.main(args)
      assert error.value.code == 2
      assert message in capsys.readouterr().err.splitlines()[-1]
