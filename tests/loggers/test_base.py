"""The setting `logger` names a subclass of `Logger`."""

import pytest

from agents import config as config_lib
from agents import training_run
from agents.loggers import base
from tests.loggers import recorders


@pytest.mark.parametrize(
  "name, message",
  [
    ("nowhere:X", "logger=nowhere:X: No module named 'nowhere'. If a package"),
    ("tests.loggers.recorders:Recoder", "of this name. Did you mean 'Recorder'?"),
    ("subprocess:Popen", "it must be derived from agents.loggers.base.Logger."),
  ],
)
def test_invalid_class_is_an_error_before_a_run_begins(name, message):
  config = config_lib.Config().override({"env.id": "tests.toy:Target", "logger": name})
  with pytest.raises(config_lib.ConfigError) as caught:
    training_run.check(config)
  assert message in str(caught.value)


def test_name_without_a_class_is_an_error():
  with pytest.raises(config_lib.ConfigError, match="`logger` must be null, or name a class as"):
    config_lib.Config().override({"logger": "wandb"})


def test_class_is_found_by_its_name():
  assert base.find("tests.loggers.recorders:Recorder") is recorders.Recorder
