"""The documentation builds as a site without warnings."""

import html.parser
import os
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

from tests.support import command

pytestmark = pytest.mark.slow


class _Page(html.parser.HTMLParser):
  """Collects the ids, the links and the number of equations of a page."""

  def __init__(self, path: pathlib.Path):
    super().__init__()
    self.ids: set[str] = set()
    self.links: list[str] = []
    self.num_equations = 0
    self.feed(path.read_text())

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    self.ids.add(attributes.get("id"))
    self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
    self.num_equations += tag == "math"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  """Returns the pages of the site by path."""
  pytest.importorskip("mkdocs")
  folder = tmp_path_factory.mktemp("site")
  done = subprocess.run(
    [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
    cwd=command.ROOT,
    capture_output=True,
    text=True,
    env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
  )
  assert done.returncode == 0, done.stderr
  assert "WARNING" not in done.stderr
  return {path: _Page(path) for path in folder.rglob("*.html")}


def test_site_has_a_page_for_each_file_and_module(site):
  root = next(path for path in site if path.name == "404.html").parent
  names = {str(path.parent.relative_to(root)) for path in site}
  docs = command.ROOT / "docs"
  pages = {
    str(path.relative_to(docs).with_suffix(""))
    for path in docs.rglob("*.md")
    if path.stem != "index"
  }
  missing = {name for name in pages if not name.startswith("results/")} - names
  assert not missing
  assert "api/agents.algorithms.ppo" in names


def test_links_inside_the_site_have_targets(site):
  for path, page in site.items():
    for link in page.links if path.name != "404.html" else ():
      url = urllib.parse.urlparse(link)
      if url.scheme or url.netloc:
        continue
      target = path.parent / urllib.parse.unquote(url.path) if url.path else (path)
      target = pathlib.Path(os.path.normpath(target))
      if target.is_dir():
        target /= "index.html"
      assert target.exists(), (path, link)
      if url.fragment and target in site:
        assert urllib.parse.unquote(url.fragment) in site[target].ids, (path, link)


def test_pages_load_nothing_from_other_servers(site):
  root = next(path for path in site if path.name == "404.html").parent
  text = "".join(path.read_text() for path in root.rglob("*.html"))
  for attribute in 'src="http', 'src="//', 'rel="stylesheet" href="http':
    assert attribute not in text


def test_equations_are_mathml(site):
  (page,) = (page for path, page in site.items() if path.parent.name == "algorithm")
  assert page.num_equations > 50
  assert not any("arithmatex" in path.read_text() for path in site)
