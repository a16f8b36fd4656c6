"""Learning on one device and acting on another gives unchanged results.

The first test needs no GPU, because TensorFlow can split the CPU into two
devices.
"""

import shutil
import subprocess
import sys

import pytest

from tests.support import command

_SCRIPT = """
import functools
import sys
import tensorflow as tf
from agents import build
from agents.algorithms import gpu_learner
from agents.environments import batch_env
from agents.environments.making import make
from agents.simulation import evaluator
from agents.simulation import in_graph_batch_env
from agents.training import trainer
from agents import configs

cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
_, config = configs.load("pendulum")
config = config.override({"num_envs": 4})
build.setup(config)

def make_envs(num_envs, seed):
  return in_graph_batch_env.InGraphBatchEnv(batch_env.BatchEnv(
      [make.MakeEnv(config.env)] * num_envs, seed=seed))

def run(device):
  envs = make_envs(4, 0), make_envs(2, 1)
  batch = envs[0].batch_env
  make_algorithm = functools.partial(
      build.algorithm, config, batch.observation_space, batch.action_space)
  algorithm = make_algorithm() if device == "CPU:0" else (
      gpu_learner.GPULearner(make_algorithm, device))
  trained = trainer.Trainer(
      algorithm, envs[0],
      evaluator.Evaluator(envs[1], algorithm, explore=False),
      build.rollout_spec(config))
  trained.start()
  seen = [trained.epoch(0.1).metrics for _ in range(2)]
  state = trained.state()
  score = trained.evaluate(2, lambda: False)
  devices = {tf.convert_to_tensor(v).device[-5:]
             for v in algorithm.variables().values()}
  assert devices == {device}, devices
  # A loaded state must affect both acting and learning.
  after = trained.epoch(0.2).metrics
  trained.load(state)
  assert trained.evaluate(2, lambda: False) == score
  assert trained.epoch(0.2).metrics == after
  return seen, score, {name: x.tobytes() for name, x in state.items()}

assert run("CPU:0") == run("CPU:1")
print("the same")
"""


@pytest.mark.slow
def test_two_devices_give_the_same_bits_as_one_device():
  output = subprocess.run(
    [sys.executable, "-c", _SCRIPT], cwd=command.ROOT, check=True, stdout=subprocess.PIPE, text=True
  ).stdout
  assert output == "the same\n"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvidia-smi"), reason="needs a GPU")
def test_gpu_solves_cartpole(tmp_path, monkeypatch):
  monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
  done = command.run(
    "train.py", "--config", "cartpole", "--device", "gpu", "--logdir", tmp_path, cwd=tmp_path
  )
  assert done.returncode == 0, done.stdout
  rows = command.rows(command.run_folder(tmp_path))
  scores = [row["return_mean"] for row in rows if row["phase"] == "eval"]
  assert max(scores) > 450
