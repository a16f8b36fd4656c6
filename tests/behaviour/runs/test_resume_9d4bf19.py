"""A run of commit 9d4bf19 continues with the same results in this version.

`run_9d4bf19` contains files that commit 9d4bf19 wrote:

    python train.py --config pendulum --seed 3 --steps 480 --set num_envs=4
        --set algorithm.segment_length=20 --set algorithm.minibatch_size=40
        --set algorithm.update_epochs=2 --set eval_episodes=2
        --set eval_every=240 --set report_every=80 --set checkpoint_every=240
        --set network.policy_layers=[8] --set network.value_layers=[8]
        --set env_processes=false

The checkpoint was saved at step 240. `expected.npz` contains the arrays of step
480. The last bits of the arrays depend on the versions of packages and on the
features of the processor. `machine.json` contains the versions and a digest of
the features.
"""

import hashlib
import json
import pathlib
import shutil

import numpy as np
import pytest

from agents import build
from agents.training import loop as loop_lib
from agents.training.run_folder import checkpoint, provenance, run_folder
from tests.support import command

pytestmark = pytest.mark.slow
_FOLDER = pathlib.Path(__file__).parent / "run_9d4bf19"


def _machine():
  """Returns the contents of `machine.json` for this machine."""
  path = pathlib.Path("/proc/cpuinfo")
  lines = path.read_text().splitlines() if path.exists() else []
  flags = next((line for line in lines if line.startswith("flags")), ":")
  features = " ".join(sorted(flags.partition(":")[2].split()))
  return {
    "versions": provenance.versions("Pendulum-v1"),
    "processor": hashlib.sha256(features.encode()).hexdigest()[:16],
  }


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
  """Returns the folder of the resumed and finished run."""
  path = tmp_path_factory.mktemp("resumed") / "run"
  shutil.copytree(_FOLDER, path)
  folder = run_folder.RunFolder(path)
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, bool)
  loop.resume()
  assert loop.step == 240
  loop.run()
  assert loop.complete
  return folder


def test_resumed_run_has_the_expected_arrays(resumed):
  arrays, metadata = checkpoint.load(checkpoint.newest(resumed.checkpoints))
  assert metadata["step"] == 480
  with np.load(_FOLDER / "expected.npz") as file:
    expected = dict(file)
  # Checkpoints contain the environments of recorded episodes since then.
  assert arrays.keys() == {*expected, "recorded/environment"}
  equal_machine = _machine() == json.loads((_FOLDER / "machine.json").read_text())
  for name, array in expected.items():
    assert arrays[name].dtype == array.dtype, name
    if equal_machine:
      assert arrays[name].tobytes() == array.tobytes(), name
    else:
      np.testing.assert_allclose(arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


def test_resumed_run_has_the_expected_metrics(resumed):
  rows, expected = command.rows(resumed.path), command.rows(_FOLDER)
  assert [row["step"] for row in rows] == [row["step"] for row in expected]
  for row, other in zip(rows, expected, strict=True):
    assert row.keys() == other.keys()
    for name, value in other.items():
      if isinstance(value, float):
        np.testing.assert_allclose(row[name], value, rtol=1e-4, err_msg=name)
      elif name != "warnings":
        assert row[name] == value, name
