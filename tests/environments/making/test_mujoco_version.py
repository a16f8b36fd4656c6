"""A version of MuJoCo with wrong physics is reported, where it matters."""

import pathlib

import mujoco
import pytest
from gymnasium.envs import mujoco as robots

from agents import config as config_lib
from agents.environments.making import make


@pytest.mark.parametrize("jacobian", ["sparse", "dense", "auto"])
def test_check_notes_wrong_accelerations_of_sparse_models(jacobian, tmp_path):
  text = pathlib.Path(robots.__file__).with_name("assets").joinpath("hopper.xml").read_text()
  model = tmp_path / "hopper.xml"
  model.write_text(text.replace("<option ", f'<option jacobian="{jacobian}" ', 1))
  notes = make.check(config_lib.Env("Hopper-v5", kwargs={"xml_file": str(model)}))
  if jacobian == "sparse" and mujoco.__version__ == "4.0.0":
    (note,) = notes
    assert "MuJoCo 4.0.0 computes wrong accelerations" in note
    assert "6 degrees of freedom" in note and "mujoco<4" in note
  else:
    assert not notes
