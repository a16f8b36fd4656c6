"""Show running and finished runs on a live page in the browser.

The page shows curves, reward parts, warnings, shares of the time and the newest
film. It can film an episode, and stop and save a run. Only programs of this
machine that know the printed address can open the page. Ctrl-C ends the server,
and does not affect the runs.

examples:
  %(prog)s ~/logdir
  %(prog)s ~/logdir --port 8000
"""

import contextlib
import functools
import signal
import sys

from agents import config as config_lib
from agents.commands import parsing


def main(argv: list[str] | None = None) -> int:
  """Runs the command `watch`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("watch", __doc__)
  option = functools.partial(parsing.option, parser)
  option("logdir LOGDIR", "run folder, or a folder that contains run folders at any depth")
  option("--port N", "port of the page (default: a free port)", type=int, default=0)
  parsing.add_code(parser)
  with parsing.parsed(parser, argv) as args:
    watch(args.logdir, args.port, args.code)
  return 0


def watch(path: str, port: int, code: list[str]) -> None:
  """Serves the live page until a signal ends this process.

  Args:
    path: Run folder, or folder that contains run folders.
    port: Port of the page; 0 selects a free one.
    code: Folders with modules that films may execute, see `import_guard`.

  Raises:
    ConfigError: If the folder does not exist, or the port is not available.
  """
  from agents.live_page import films, logdir, server

  for signum in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(signum, lambda number, _: sys.exit(128 + number))
  runs = logdir.Logdir(path)
  with contextlib.closing(films.FilmProcess(code)) as film_process:
    try:
      page = server.Server(runs, film_process, parsing.name(), port)
    except (OSError, OverflowError) as error:
      raise config_lib.ConfigError(
        f"--port {port}: {error}. Select another port, or leave out this option."
      ) from None
    with page:
      print(f"Watch {runs.path} on this page; Ctrl-C ends the server:\n{page.url}", flush=True)
      page.serve_forever()
