"""An epoch is one graph for every config and preset.

The graph contains one XLA program for the update, or none if the observations
are images.
"""

import pytest
import tensorflow as tf

from agents import build, configs
from agents import config as config_lib
from agents.algorithms.variants import image_ppo
from agents.commands.shared import merge_settings
from tests.support import config_fixtures
from tests.videos import gl_support

_FAST_COMBINATIONS = [("pendulum", None)]
# A preset replaces algorithm and networks, so that the graph depends on the
# config only by the spaces of its environment.
_COMBINATIONS = [
  *((name, None) for name in configs.names() if configs.load(name)[1].env.id),
  *((name, preset) for name in ("cartpole", "pixel_cartpole") for preset in ("paper", "recurrent")),
]


@pytest.mark.parametrize(
  "name, preset",
  [
    pytest.param(*each, marks=() if each in _FAST_COMBINATIONS else pytest.mark.slow)
    for each in _COMBINATIONS
  ],
)
def test_epoch_is_one_graph(name, preset):
  config_fixtures.config(name)  # Skips the test if a package is missing.
  config = merge_settings.of_new_run(name, [preset] if preset else [], {}).config
  # The number of environments does not change the operations of the graph. Two
  # environments are built faster than all.
  changes = {"num_envs": 2, "eval_episodes": 1, "device": "cpu"}
  if length := config.algorithm.segment_length:
    changes["algorithm.minibatch_size"] = 2 * length
  with gl_support.workers(config) as workers:
    try:
      trainer = build.trainer(config.override(changes), workers)
    except config_lib.ConfigError as error:
      assert preset, error
      pytest.skip(f"The preset does not fit: {error}")
    try:
      trainer.start()
      graph = trainer.train_epoch.get_concrete_function(trainer._carry, tf.constant(0.0)).graph
    finally:
      trainer.close()
  assert trainer.train_epoch.experimental_get_tracing_count() == 1
  programs = [
    op.name
    for op in graph.get_operations()
    if "_XlaMustCompile" in op.node_def.attr and op.get_attr("_XlaMustCompile")
  ]
  assert len(programs) == (not isinstance(trainer.algorithm, image_ppo.ImagePPO))
