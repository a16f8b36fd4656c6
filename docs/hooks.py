"""Hooks of MkDocs: API pages, links to source files, and equations.

`python docs/hooks.py` writes docs/configuration.md from agents/config.py.
"""

import ast
import html
import itertools
import pathlib
import posixpath
import re

_ROOT = pathlib.Path(__file__).parents[1]
_SECTIONS = {"Config": "", "Env": "env.", "Algorithm": "algorithm.", "Network": "network."}
_SOURCE_LINK = re.compile(
  r"\[([^\]]*)\]\((?:\.\./)+((?:\.ci|agents|benchmarks|configs|tests)/[^)]*)"
  r"\)"
)


_EQUATION = re.compile(r'(<(span|div) class="arithmatex">)\\([(\[])(.*?)\\[)\]]</\2>', re.DOTALL)


def modules() -> list[str]:
  """Returns the names of all modules of the package that have a docstring."""
  names = []
  for path in sorted((_ROOT / "agents").rglob("*.py")):
    if path.name[0] != "_" and ast.get_docstring(ast.parse(path.read_text())):
      names.append(".".join(path.relative_to(_ROOT).with_suffix("").parts))
  return names


def on_files(files, config):
  """Adds one page per module, and a page with links to all of them."""
  from mkdocs.structure import files as files_lib

  lines = ["# API\n", "This page lists all modules of the package.\n"]
  for package, names in itertools.groupby(sorted(modules(), key=_package), _package):
    lines.append(f"\n## `{package}`\n")
    for name in names:
      path = _ROOT / (name.replace(".", "/") + ".py")
      text = ast.get_docstring(ast.parse(path.read_text())) or ""
      summary = " ".join(text.partition("\n\n")[0].split())
      lines.append(f"- [`{name}`]({name}.md): {summary}")
      files.append(
        files_lib.File.generated(config, f"api/{name}.md", content=f"# {name}\n\n::: {name}\n")
      )
  files.append(files_lib.File.generated(config, "api/index.md", content="\n".join(lines) + "\n"))
  return files


def _package(name: str) -> str:
  return ".".join(name.split(".")[:2]) if name.count(".") > 1 else "agents"


def on_page_markdown(markdown, page, config, files):
  """Replaces links to source files by links to the API, or by plain text."""
  folder = posixpath.dirname(page.file.src_uri)

  def replace(match):
    text, path = match.groups()
    api = f"api/{path.removesuffix('.py').replace('/', '.')}.md"
    if not files.get_file_from_path(api):
      return text
    return f"[{text}]({posixpath.relpath(api, folder or '.')})"

  return _SOURCE_LINK.sub(replace, markdown)


def on_page_content(html_text, page, config, files):
  """Converts equations from LaTeX to MathML, which browsers show themselves."""
  from latex2mathml import converter

  def replace(match):
    _, tag, opening, latex = match.groups()
    display = "block" if opening == "[" else "inline"
    mathml = converter.convert(html.unescape(latex).strip(), display=display)
    style = ' style="overflow-x: auto"' if display == "block" else ""
    return f"<{tag}{style}>{mathml}</{tag}>"

  return _EQUATION.sub(replace, html_text)


def configuration() -> str:
  """Returns the page about all settings, from agents/config.py."""
  source = (_ROOT / "agents" / "config.py").read_text()
  lines = source.splitlines()
  body = ast.parse(source).body
  classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
  aliases = {
    node.targets[0].id: node.value
    for node in body
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
  }
  page = [
    "# Settings",
    "",
    "This page lists every setting with its type and default.",
    "`--set KEY=VALUE` changes a setting, and `--print-config` prints all values of a config with",
    "their origin. `python docs/hooks.py` generates this page from",
    "[`agents/config.py`](../agents/config.py).",
  ]
  for name, prefix in _SECTIONS.items():
    title = f"`{prefix.rstrip('.')}`" if prefix else "Run"
    page += ["", f"## {title}", "", "| setting | type | default | meaning |", "|---|---|---|---|"]
    for field in classes[name].body:
      if not isinstance(field, ast.AnnAssign):
        continue
      comment, index = [], field.lineno - 2
      while lines[index].strip().startswith("#"):
        comment.insert(0, lines[index].strip().removeprefix("#").strip())
        index -= 1
      key = ast.unparse(field.target)
      if key in ("env", "algorithm", "network") and not prefix:
        continue
      page.append(
        f"| `{prefix}{key}` | `{_type(field.annotation, aliases)}` | "
        f"`{_default(field.value)}` | {_cell(' '.join(comment))} |"
      )
  return "\n".join(page) + "\n"


def _type(annotation: ast.expr, aliases: dict[str, ast.expr]) -> str:
  """Returns a type without its rule, such as "int | None"."""
  if isinstance(annotation, ast.Name) and annotation.id in aliases:
    return _type(aliases[annotation.id], aliases)
  if isinstance(annotation, ast.Subscript):
    name = ast.unparse(annotation.value)
    if name == "Annotated":
      return _type(annotation.slice.elts[0], aliases)
    if name.startswith("_"):
      return _type(annotation.slice, aliases)
  return ast.unparse(annotation).replace("|", "\\|")


def _default(value: ast.expr | None) -> str:
  """Returns the default of a field in YAML."""
  if isinstance(value, ast.Call):  # dataclasses.field(default_factory=...)
    return "{}" if "dict" in ast.unparse(value) else "[]"
  if isinstance(value, ast.Tuple):
    return str([ast.literal_eval(item) for item in value.elts])
  constant = ast.literal_eval(value) if value else None
  if constant is None or isinstance(constant, bool):
    return {None: "null", True: "true", False: "false"}[constant]
  return str(constant) or '""'


def _cell(text: str) -> str:
  return text.replace("|", "\\|")


if __name__ == "__main__":
  (_ROOT / "docs" / "configuration.md").write_text(configuration())
