"""Prints the named configs as a table."""

from agents import configs


def table() -> str:
  """Returns a table with two lines per named config that has an environment."""
  rows = [("config", "task", "steps", "score", "minutes")]
  descriptions = [""]
  for name in configs.names():
    config = configs.load(name)[1]
    if not config.env.id:
      continue
    text, expected = configs.about(name)
    score, minutes = "", ""
    if expected:
      score, minutes = f"{expected.score:g}", f"{expected.minutes:g}"
      if expected.std is not None:
        score += f" ± {expected.std:g}"
    rows.append((name, config.env.id, f"{config.steps:,}", score, minutes))
    descriptions.append("\n    " + text.removeprefix(f"{config.env.id}: "))
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = [
      "  ".join(map(str.ljust, row, widths)).rstrip() + description
      for row, description in zip(rows, descriptions, strict=True)]
  return "\n".join([
      *lines, "\nScores are final returns with the mean action. Minutes were "
      "measured on at most two CPU cores."])
