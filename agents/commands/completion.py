"""Print the script with which a shell completes commands at Tab.

The script completes the program `batched-ppo`: commands, options, choices,
configs, presets, settings and files.

examples:
  source <(%(prog)s bash)  # In ~/.bashrc.
  source <(%(prog)s zsh)   # In ~/.zshrc, after `autoload -U compinit; compinit`
  %(prog)s fish | source   # In ~/.config/fish/config.fish.
"""

from agents import config as config_lib
from agents.commands import parsing
from agents.commands.shared import completing


def main(argv: list[str] | None = None) -> int:
  """Runs the command `completion`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("completion", __doc__)
  parsing.option(parser, "shell", "shell that reads the script", choices=("bash", "zsh", "fish"))
  with parsing.parsed(parser, argv) as args:
    try:
      import argcomplete
    except ImportError:
      raise config_lib.ConfigError(completing.HINT) from None
    print(argcomplete.shellcode(["batched-ppo"], shell=args.shell))
  return 0
