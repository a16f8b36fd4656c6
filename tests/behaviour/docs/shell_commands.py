"""Shell commands of Markdown files."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

from tests.support import command, forked

# Folder of the current Python interpreter.
PYTHON_FOLDER = pathlib.Path(sys.executable).parent


def commands(path: str) -> list[str]:
  """Returns the commands in all shell blocks of a file, without comments."""
  text = (command.ROOT / path).read_text()
  blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
  languages = set(re.findall(r"^```(\w*)\n.*?^```$", text, re.MULTILINE | re.DOTALL))
  assert not languages & {"bash", "console", "shell"}, "Use ```sh for commands."
  return [re.sub(r" +# .*", "", line) for line in "".join(blocks).splitlines()]


def variables(home: pathlib.Path, folder: pathlib.Path) -> dict[str, str]:
  """Returns the variables of a shell that finds programs in `folder`."""
  cache = os.environ.get("PIP_CACHE_DIR", str(pathlib.Path.home() / ".cache" / "pip"))
  return {
    **os.environ,
    "HOME": str(home),
    "PIP_CACHE_DIR": cache,
    "PIP_NO_COMPILE": "1",
    "PATH": f"{folder}:{os.environ['PATH']}",
  }


def run(
  line: str, home: pathlib.Path, cwd: pathlib.Path, folder: pathlib.Path = PYTHON_FOLDER
) -> str:
  """Runs a command in bash, which finds programs in `folder`."""
  done = subprocess.run(
    ["bash", "-c", line],
    cwd=cwd,
    env=variables(home, folder),
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=1200,
  )
  assert done.returncode == 0, f"{line}\n{done.stdout}"
  return done.stdout


def run_forked(line: str, home: pathlib.Path) -> str:
  """Runs a command of this project in a fork, which needs no time for imports.

  Args:
    line: `python SCRIPT ...`, `python -m agents ...` or `batched-ppo ...`.
      Variables such as `NAME=VALUE` may precede the program.
    home: Home folder and current folder.
  """
  words = [str(home) + word[1:] if word.startswith("~") else word for word in shlex.split(line)]
  variables = {"HOME": str(home)}
  while "=" in words[0]:
    name, _, variables[name] = words.pop(0).partition("=")
  program, *words = words
  if program == "batched-ppo" or words[:2] == ["-m", "agents"]:
    arguments = words if program == "batched-ppo" else words[2:]
    process = forked.Process("agents", arguments, home, variables)
  else:
    process = command.start(*words, cwd=home, variables=variables)
  output, _ = process.communicate(timeout=600)
  assert process.returncode == 0, f"{line}\n{output}"
  return output
