"""Requests to a real server over HTTP."""

import contextlib
import http.client
import json
import os
import threading
import urllib.parse

import pytest

from agents.live_page import films, logdir, server
from tests.reports import folders


class Client:
  """Sends requests to a server, by default with its token and its host."""

  def __init__(self, served: server.Server):
    self.token, self.port = served.token, served.server_port

  def send(self, method, path, headers=None, token=None):
    """Returns status, headers and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
    with contextlib.closing(connection):
      connection.request(method, f"/{token or self.token}/{path}", headers=headers or {})
      answer = connection.getresponse()
      return answer.status, answer.headers, answer.read()

  def status(self, method, path, headers=None, token=None):
    """Returns the status of an answer."""
    return self.send(method, path, headers, token)[0]

  @property
  def origin(self):
    """Headers of an action that the page itself requests."""
    return {"Origin": f"http://127.0.0.1:{self.port}"}


@pytest.fixture
def folder(tmp_path):
  """Returns a run folder with a film of 1000 bytes."""
  path = folders.make(tmp_path / "logdir" / "1-cheetah", [1.0, 2.0])
  (path / "videos").mkdir()
  (path / "videos" / "a.mp4").write_bytes(bytes(range(250)) * 4)
  return path


@pytest.fixture
def client(folder):
  """Returns a client of a server about `folder`."""
  with (
    contextlib.closing(films.FilmProcess([])) as film_process,
    server.Server(logdir.Logdir(folder.parent), film_process, "batched-ppo") as served,
  ):
    thread = threading.Thread(target=served.serve_forever, args=[0.01])
    thread.start()
    try:
      yield Client(served)
    finally:
      served.shutdown()
      thread.join()


def test_page_has_all_of_its_files_and_permits_no_others(client):
  status, headers, content = client.send("GET", "")
  assert status == 200 and b"<!doctype html>" in content
  policy = headers["Content-Security-Policy"]
  assert "default-src 'none'" in policy and "unsafe" not in policy
  assert headers["X-Content-Type-Options"] == "nosniff"
  for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
    status, headers, _ = client.send("GET", name)
    assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
  for path in ("x", "../server.py", "%2e%2e/server.py", "page.js/x", "/etc/passwd"):
    assert client.status("GET", path) == 404, path


@pytest.mark.parametrize("path", ["", "page.js", "runs", "run?run=1-cheetah", "film?run=1-cheetah"])
def test_requests_with_another_token_or_host_are_refused(path, client):
  assert client.status("GET", path, token="x" * len(client.token)) == 403
  assert client.status("GET", path, {"Host": f"evil.example:{client.port}"}) == 403
  assert client.status("GET", path, {"Host": "["}) == 403


def test_local_host_name_is_accepted_so_that_ports_can_be_forwarded(client):
  assert client.status("GET", "runs", {"Host": "localhost:1234"}) == 200


@pytest.mark.parametrize("action", ["stop", "film"])
@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1"])
def test_actions_from_other_origins_are_refused(action, origin, client):
  headers = {} if origin is None else {"Origin": origin}
  assert client.status("POST", f"{action}?run=1-cheetah", headers) == 403
  assert client.status("GET", "stop?run=1-cheetah") == 404


def test_actions_with_another_token_are_refused(client):
  assert client.status("POST", "stop?run=1-cheetah", client.origin, token="x") == 403


def test_rows_are_sent_once(client, folder):
  (name, summary), *_ = json.loads(client.send("GET", "runs")[2])["runs"].items()
  assert (name, summary["num_rows"], summary["return"]) == ("1-cheetah", 2, 2.0)

  def read(generation, start):
    query = urllib.parse.urlencode({"run": name, "generation": generation, "start": start})
    answer = json.loads(client.send("GET", f"run?{query}")[2])
    return answer["generation"], answer["start"], len(answer["rows"])

  assert read(-1, 0) == (0, 0, 2)
  assert read(0, 1) == (0, 1, 1)
  text = (folder / "metrics.jsonl").read_text().replace("36.0", "37.0")
  (folder / "metrics.jsonl").write_text(text.splitlines()[0] + "\n")
  assert read(0, 2) == (1, 0, 1)


def test_unknown_runs_and_invalid_numbers_are_refused(client):
  client.send("GET", "runs")
  assert client.status("GET", "run?run=../1-cheetah") == 404
  assert client.status("GET", "run?run=1-cheetah&start=x") == 400
  assert client.status("POST", "stop?run=x", client.origin) == 404


@pytest.mark.parametrize(
  "selected, start, stop",
  [("0-99", 0, 100), ("900-", 900, 1000), ("-100", 900, 1000), ("0-9999", 0, 1000)],
)
def test_parts_of_a_film_can_be_requested(selected, start, stop, client):
  client.send("GET", "runs")
  status, headers, content = client.send(
    "GET", "film?run=1-cheetah&file=a.mp4", {"Range": f"bytes={selected}"}
  )
  assert (status, headers["Content-Range"]) == (206, f"bytes {start}-{stop - 1}/1000")
  assert content == (bytes(range(250)) * 4)[start:stop]


def test_whole_films_are_sent_and_impossible_parts_are_refused(client):
  client.send("GET", "runs")
  status, headers, content = client.send("GET", "film?run=1-cheetah&file=a.mp4")
  assert (status, len(content), headers["Accept-Ranges"]) == (200, 1000, "bytes")
  for selected in ("1000-", "9-3", "-0"):
    headers = {"Range": f"bytes={selected}"}
    assert client.status("GET", "film?run=1-cheetah&file=a.mp4", headers) == 416


def test_only_complete_films_in_the_run_folder_are_sent(client, folder, tmp_path):
  client.send("GET", "runs")
  (tmp_path / "secret.mp4").write_bytes(b"secret")
  (folder / "videos" / "link.mp4").symlink_to(tmp_path / "secret.mp4")
  (folder / "videos" / "b.part.mp4").write_bytes(b"incomplete")
  os.mkfifo(folder / "videos" / "pipe.mp4")
  assert json.loads(client.send("GET", "run?run=1-cheetah")[2])["film"] == "a.mp4"
  for file in ("link.mp4", "b.part.mp4", "pipe.mp4", "../config.yaml", "..%2Fconfig.yaml"):
    assert client.status("GET", f"film?run=1-cheetah&file={file}") == 404, file


def test_run_without_a_process_cannot_be_stopped(client, folder):
  client.send("GET", "runs")
  # The process is alive, but does not hold the lock.
  text = json.dumps({"host": os.uname().nodename, "process": os.getppid()})
  (folder / "lock").write_text(text)
  status, _, content = client.send("POST", "stop?run=1-cheetah", client.origin)
  assert (status, content) == (409, b"No process of this machine trains the run.")
