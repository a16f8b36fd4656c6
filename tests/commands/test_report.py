import csv
import json
import shutil

import pytest

from agents.commands import report
from tests.reports import folders
from tests.support import command


def _report(cwd, *args):
  return command.run_agents("report", *args, cwd=cwd)


@pytest.mark.slow
def test_report_contains_all_scores_of_a_run(finished, tmp_path):
  folder, _, _ = finished
  done = _report(tmp_path, folder)
  assert done.returncode == 0, done.stdout
  assert done.stdout == "Written: report.html, report-points.csv (1 run)\n"
  text = (tmp_path / "report.html").read_text()
  assert "Runs of Pendulum-v1" in text and "<svg" in text
  with open(tmp_path / "report-points.csv") as file:
    points = list(csv.DictReader(file))
  rows = [row for row in command.rows(folder) if row["return_mean"] is not None]
  assert len(points) == len(rows) > 10
  assert {point["return"] for point in points} == {f"{row['return_mean']:.6g}" for row in rows}


def test_runs_without_scores_are_skipped_with_a_note(tmp_path, capsys):
  good = folders.make(tmp_path / "runs" / "1-cheetah", [1.0])
  empty = shutil.copytree(good, tmp_path / "runs" / "2-cheetah")
  (empty / "metrics.jsonl").write_text("")
  invalid = tmp_path / "runs" / "other"
  invalid.mkdir()
  (invalid / "config.yaml").write_text("a: 1")
  out = tmp_path / "new" / "page.html"
  assert report.main([str(tmp_path / "runs"), "--out", str(out)]) == 0
  printed = capsys.readouterr()
  assert "2-cheetah has no scores yet" in printed.err
  assert "has no field 'a'" in printed.err
  assert "(1 run)" in printed.out and out.exists()
  assert (tmp_path / "new" / "page-points.csv").exists()


def test_json_has_the_files_and_the_runs(tmp_path, capsys):
  run = folders.make(tmp_path / "runs" / "1-cheetah", [1.0])
  out = tmp_path / "page.html"
  assert report.main([str(run.parent), "--out", str(out), "--json"]) == 0
  printed = capsys.readouterr()
  assert json.loads(printed.out) == {
    "page": str(out),
    "points": str(tmp_path / "page-points.csv"),
    "runs": [str(run)],
  }
  assert printed.err.startswith("Written: ")


@pytest.mark.parametrize(
  "args, code, message",
  [
    (["nowhere"], 2, "nowhere: there is no run folder"),
    (["empty"], 2, "no run has any scores yet"),
    (["good", "--out", "x.csv"], 2, "name the HTML file"),
    (["good", "--out", ""], 2, "name the HTML file"),
    (["good", "--out", "good"], 1, "good"),
  ],
)
def test_invalid_arguments_are_reported_in_one_line(
  args, code, message, tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  folders.make(tmp_path / "good" / "1-cheetah", [1.0])
  empty = folders.make(tmp_path / "empty" / "1-cheetah", [1.0])
  (empty / "metrics.jsonl").write_text("")
  with pytest.raises(SystemExit) as error:
    report.main(args)
  assert error.value.code == code
  assert message in capsys.readouterr().err.splitlines()[-1]
