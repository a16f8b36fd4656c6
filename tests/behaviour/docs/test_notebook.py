"""A run can be trained in a notebook, which has no importable main module."""

import nbclient
import nbformat
import pytest

from tests.support import command

_TRAIN = """\
from agents.commands import train
code = train.main({args})
print("exit code", code)
"""


@pytest.mark.slow
def test_notebook_trains_and_resumes_a_run(tmp_path):
  args = [*command.SMALL, "--steps", "400", "--logdir", str(tmp_path / "runs")]
  cells = [
    _TRAIN.format(args=args),
    _TRAIN.format(args=["--resume", str(tmp_path / "runs"), "--steps", "600"]),
  ]
  notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
  nbclient.NotebookClient(
    notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
  ).execute()
  printed = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
  assert "Finished 400 steps" in printed[0] and "exit code 0" in printed[0]
  assert "Finished 600 steps" in printed[1] and "exit code 0" in printed[1]
  rows = command.rows(command.run_folder(tmp_path / "runs"))
  assert (rows[-1]["phase"], rows[-1]["step"]) == ("eval", 600)
