"""What the bits of a run depend on is told apart."""

import pathlib

import agents
from agents.training import provenance


def test_versions_are_texts():
  versions = provenance.versions()
  assert {"python", "tensorflow", "gymnasium", "numpy"} <= versions.keys()
  assert all(isinstance(version, str) for version in versions.values())


def test_every_file_has_a_digest():
  root = pathlib.Path(agents.__file__).parent
  code = provenance.code("HalfCheetah-v5")
  assert len(code) == len(list(root.rglob("*.py")))
  assert "agents/algorithms/ppo.py" in code
  assert provenance.code("HalfCheetah-v5") == code
  # Built into Python, or nowhere: nothing to tell.
  assert provenance.code("os:Env").keys() - code.keys() <= {"module os"}
  for unknown in ("no_module:Env", "no_module.inside:Env", "__main__:Env"):
    assert provenance.code(unknown) == code
  other = provenance.code("tests.toy:Counter")
  assert other.keys() - code.keys() == {"module tests.toy"}


def test_differences_name_what_was_and_what_is():
  assert provenance.differences({"a": 1, "b": 2, "c": 3}, {
      "a": 1, "c": 4, "d": 5}) == ["b 2 -> (none)", "c 3 -> 4", "d (none) -> 5"]
