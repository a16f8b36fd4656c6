"""HTTP server of the live page, for the user of this machine only.

Each request must contain the secret token in its path. Other web pages cannot
send requests: the host must be local, and actions need the origin of this page.
Paths in requests only select entries of dictionaries, never files.
"""

import hmac
import http.server
import json
import os
import pathlib
import re
import secrets
import signal
import threading
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.live_page import films, logdir, run_reader
from agents.training.run_folder import run_lock

HOST = "127.0.0.1"
_ASSETS = pathlib.Path(__file__).with_name("assets")
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
  "Cache-Control": "no-store",
  "Content-Security-Policy": (
    "default-src 'none'; connect-src 'self'; img-src data:; media-src 'self'; "
    "script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
  ),
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
}
_CHUNK_BYTES = 2**16


class Query(NamedTuple):
  """Parameters of a request."""

  run: str = ""  # Key of `Logdir.runs`.
  file: str = ""  # Name of a film.
  generation: int = -1  # See `RunReader.generation`.
  start: int = 0  # Number of rows that the page knows.


class RequestError(Exception):
  """A request that is refused, with its status and a text for the page."""

  def __init__(self, status: HTTPStatus, text: str) -> None:
    super().__init__(text)
    self.status = status


class Server(http.server.ThreadingHTTPServer):
  """Serves the page about a folder of runs until `shutdown`.

  Attributes:
    url: Address of the page, which contains the token.

  Args:
    runs: Folder of runs.
    film_process: Process that films episodes.
    program: Start of the commands that the page shows.
    port: Port; 0 selects a free one.

  Raises:
    OSError: If the port is in use.
  """

  daemon_threads = True

  def __init__(
    self, runs: logdir.Logdir, film_process: films.FilmProcess, program: str, port: int = 0
  ) -> None:
    super().__init__((HOST, port), _Handler)
    self.token = secrets.token_urlsafe(16)
    self.url = f"http://{HOST}:{self.server_port}/{self.token}/"
    self.logdir = runs
    self.film_process = film_process
    self.program = program
    self.lock = threading.Lock()  # Of `logdir` and `film_process`.
    self.assets = {path.name: path.read_bytes() for path in _ASSETS.iterdir()}

  def handle_error(self, request: Any, client_address: Any) -> None:
    """Ignores connections that the browser has closed."""


class _Handler(http.server.BaseHTTPRequestHandler):
  """Answers the requests of one connection."""

  server: Server
  protocol_version = "HTTP/1.1"
  timeout = 60  # Seconds until an idle connection is closed.

  def do_GET(self) -> None:
    """Answers a request for the page, its data or a film."""
    self._answer({"runs": self._runs, "run": self._run, "film": self._film})

  def do_POST(self) -> None:
    """Answers a request for an action."""
    self.close_connection = True  # The content of the request is not read.
    if self.headers["Origin"] != f"http://{self.headers['Host']}":
      self._send(HTTPStatus.FORBIDDEN, b"Actions need the origin of the page.", "text/plain")
      return
    self._answer({"stop": self._stop, "film": self._start_film})

  def log_message(self, format: str, *args: Any) -> None:
    """Prints nothing, because requests contain the token."""

  def _answer(self, actions: dict[str, Callable[[Query], None]]) -> None:
    """Answers a permitted request for `/TOKEN/NAME`."""
    path, _, query = self.path.partition("?")
    token, _, name = path.removeprefix("/").partition("/")
    try:
      self._check_access(token)
      if self.command == "GET" and (name or "page.html") in self.server.assets:
        name = name or "page.html"
        self._send(HTTPStatus.OK, self.server.assets[name], _TYPES[pathlib.Path(name).suffix])
      elif name in actions:
        actions[name](_parse(query))
      else:
        raise RequestError(HTTPStatus.NOT_FOUND, "There is no such page.")
    except RequestError as error:
      self._send(error.status, str(error).encode(), "text/plain")

  def _check_access(self, token: str) -> None:
    """Raises RequestError if the token or the host is wrong."""
    # A web page whose name leads to this machine would have another host.
    host = re.sub(r":\d+$", "", self.headers["Host"] or "")
    expected = self.server.token.encode()
    if host not in (HOST, "localhost") or not hmac.compare_digest(token.encode(), expected):
      raise RequestError(
        HTTPStatus.FORBIDDEN, "Access denied. Open the address that the command `watch` printed."
      )

  def _find(self, name: str) -> run_reader.RunReader:
    """Returns the run of a request; must be called with the lock."""
    run = self.server.logdir.find(name)
    if run is None:
      raise RequestError(HTTPStatus.NOT_FOUND, f"There is no run {name} anymore.")
    return run

  def _runs(self, _: Query) -> None:
    """Sends summaries of all runs."""
    with self.server.lock:
      runs = {name: run.summary() for name, run in self.server.logdir.runs().items()}
    self._send_json(
      {"logdir": str(self.server.logdir.path), "program": self.server.program, "runs": runs}
    )

  def _run(self, query: Query) -> None:
    """Sends new rows and the newest film of a run."""
    with self.server.lock:
      reader = self._find(query.run)
      first = query.start if query.generation == reader.generation else 0
      recorded = films.find(reader.path)
      self._send_json(
        {
          "generation": reader.generation,
          "start": first,
          "rows": reader.rows[first:],
          "film": recorded[-1].name if recorded else None,
          "film_version": recorded[-1].stat().st_mtime_ns if recorded else None,
          "film_process": self.server.film_process.state(reader.path),
        }
      )

  def _film(self, query: Query) -> None:
    """Sends a film, or the requested part of it."""
    with self.server.lock:
      entries = {entry.name: entry for entry in films.find(self._find(query.run).path)}
    if query.file not in entries:
      raise RequestError(HTTPStatus.NOT_FOUND, f"There is no film {query.file} anymore.")
    with run_reader.open_file(pathlib.Path(entries[query.file].path)) as file:
      size = os.fstat(file.fileno()).st_size
      status, headers = HTTPStatus.OK, {"Accept-Ranges": "bytes"}
      start, stop = 0, size
      if selected := _byte_range(self.headers["Range"], size):
        start, stop = selected
        status = HTTPStatus.PARTIAL_CONTENT
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
      self._send_head(status, "video/mp4", stop - start, headers)
      file.seek(start)
      while chunk := file.read(min(_CHUNK_BYTES, stop - file.tell())):
        self.wfile.write(chunk)

  def _start_film(self, query: Query) -> None:
    """Starts to film the newest recorded episode of a run."""
    with self.server.lock:
      try:
        self.server.film_process.start(self._find(query.run).path)
      except (config_lib.ConfigError, OSError) as error:
        raise RequestError(HTTPStatus.CONFLICT, str(error)) from None
    self._send_json({})

  def _stop(self, query: Query) -> None:
    """Requests the process that trains a run to save and end."""
    with self.server.lock:
      owner = run_lock.holder(self._find(query.run).path)
    if owner is None:
      raise RequestError(HTTPStatus.CONFLICT, "No process of this machine trains the run.")
    try:
      os.kill(owner.process, signal.SIGTERM)
    except OSError as error:
      text = f"{owner} can't be stopped: {error.strerror}."
      raise RequestError(HTTPStatus.CONFLICT, text) from None
    self._send_json({})

  def _send_json(self, data: Any) -> None:
    self._send(HTTPStatus.OK, json.dumps(data).encode(), "application/json")

  def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
    self._send_head(status, f"{kind}; charset=utf-8", len(content), {})
    self.wfile.write(content)

  def _send_head(self, status: HTTPStatus, kind: str, size: int, headers: dict[str, str]) -> None:
    self.send_response(status)
    lengths = {"Content-Type": kind, "Content-Length": str(size)}
    for name, value in {**_HEADERS, **lengths, **headers}.items():
      self.send_header(name, value)
    self.end_headers()


def _parse(text: str) -> Query:
  """Returns the parameters of a request; ignores unknown ones."""
  values = {key: last for key, (*_, last) in urllib.parse.parse_qs(text).items()}
  try:
    return Query(
      run=values.get("run", ""),
      file=values.get("file", ""),
      generation=int(values.get("generation", -1)),
      start=int(values.get("start", 0)),
    )
  except ValueError:
    raise RequestError(HTTPStatus.BAD_REQUEST, "The request contains an invalid number.") from None


def _byte_range(header: str | None, size: int) -> tuple[int, int] | None:
  """Returns start and exclusive stop of the bytes that a request selects.

  Args:
    header: Value of the header "Range", such as "bytes=0-99", "bytes=100-" or
      "bytes=-100".
    size: Size of the file.

  Returns:
    None for the whole file. HTTP permits to ignore other ranges.

  Raises:
    RequestError: If the range contains no byte of the file.
  """
  found = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
  if not found or found.groups() == ("", ""):
    return None
  first, last = found.groups()
  start = int(first) if first else max(0, size - int(last))
  stop = min(int(last) + 1, size) if first and last else size
  if start >= stop:
    raise RequestError(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"The film has {size} bytes.")
  return start, stop
