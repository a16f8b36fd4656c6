"""`env.backend` selects the block that steps the training environments."""

import pytest

from agents import config as config_lib
from agents.environments import backends
from agents.environments.blocks import envpool_block


def _config(backend):
  return config_lib.Config().override({"env.backend": backend})


def test_gymnasium_needs_no_block_and_no_check():
  assert backends.block_class(_config("gymnasium")) is None
  assert backends.check(_config("gymnasium")) == []


def test_envpool_steps_with_all_workers_as_threads():
  config = _config("envpool").override({"num_workers": 3})
  block_class = backends.block_class(config)
  assert block_class.func is envpool_block.EnvPoolBlock
  assert block_class.keywords == {"threads": 3}


@pytest.mark.parametrize("function", [backends.block_class, backends.check])
def test_unknown_custom_backend_is_an_error(function):
  with pytest.raises(config_lib.ConfigError, match="env.backend=nowhere:None"):
    function(_config("nowhere:None"))
