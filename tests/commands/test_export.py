"""`python -m agents export` writes policies that equal the trained policy."""

import importlib.util
import json
import os

import pytest

from agents.commands import export
from agents.export import formats
from agents.export.formats import npz
from tests.export import readme_code, test_formats, untrained_runs


@pytest.mark.slow
def test_exported_files_and_examples_run(finished, tmp_path, capsys, monkeypatch):
  folder, _, _ = finished
  out = tmp_path / "policy"
  assert export.main([str(folder), "--format", "savedmodel", "npz", "--out", str(out)]) == 0
  printed = capsys.readouterr().out
  assert printed.startswith("Pendulum-v1 after 2,000 steps, 10 episodes of the policy in training")
  assert printed.count("largest difference") == 2
  assert printed.count(" ms an action") == 2
  assert {path.name for path in out.iterdir()} == {
    "README.md",
    "signature.json",
    "saved_model",
    "policy.npz",
    "player.py",
  }
  signature = json.loads((out / "signature.json").read_text())
  assert list(signature["inputs"]) == ["observation"]
  assert signature["outputs"]["action"]["shape"] == [1]
  first, second = readme_code.play(out / "README.md", out, monkeypatch)
  assert first == pytest.approx(second, 1e-3) and -3000 < first < 0


@pytest.mark.slow
@pytest.mark.parametrize(
  "args, message",
  [
    ([], "the following arguments are required"),
    (["--out", "{0}", "--format", "pickle"], "invalid choice: 'pickle'"),
    (["--out", "{0}", "--checkpoint", "77"], "77"),
    (["--out", "{1}"], "is not empty; name a new folder"),
    (["--out", "{1}/config.yaml"], "is a file; name a new folder"),
  ],
)
def test_user_errors_exit_without_creating_a_folder(args, message, finished, tmp_path, capsys):
  folder, _, _ = finished
  args = [arg.format(tmp_path / "new", folder) for arg in args]
  with pytest.raises(SystemExit) as caught:
    export.main([str(folder), *args])
  assert caught.value.code in (1, 2)
  assert message in capsys.readouterr().err
  assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_format_that_differs_from_training_is_reported_and_not_kept(tmp_path, capsys, monkeypatch):
  folder = untrained_runs.make_run(tmp_path, "choice")
  out = tmp_path / "policy"
  original = npz.Format.load

  def load(self, path):
    run = original(self, path)
    return lambda inputs: {"action": 1 - run(inputs)["action"]}

  monkeypatch.setattr(npz.Format, "load", load)
  with pytest.raises(SystemExit) as caught:
    export.main([str(folder.path), "--format", "npz", "savedmodel", "--out", str(out)])
  assert caught.value.code == 1
  printed = capsys.readouterr()
  assert printed.out.count("DIFFERS") == 1
  assert "npz: not exported" in printed.err
  assert not (out / "policy.npz").exists() and (out / "saved_model").exists()
  assert "player" not in (out / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
  "kind, actions", [("nested", "mean"), ("pictures", "mean"), ("gru", "sampled")]
)
def test_command_exports_policies_in_every_format(kind, actions, tmp_path, capsys):
  names = [
    param.values[0]
    for param in test_formats.FORMATS
    if all(map(importlib.util.find_spec, formats.load(param.values[0]).modules))
  ]
  if kind == "nested":  # ONNX export rejects nested actions.
    names = [name for name in names if name != "onnx"]
  folder = untrained_runs.make_run(tmp_path, kind)
  assert (
    export.main(
      [
        str(folder.path),
        "--format",
        *names,
        "--actions",
        actions,
        "--out",
        str(tmp_path / "policy"),
        "--json",
      ]
    )
    == 0
  )
  printed = capsys.readouterr()
  assert printed.err.count("largest difference") == len(names)
  policies = json.loads(printed.out)["policies"]
  assert len(policies) == len(names) and all(map(os.path.exists, policies))
