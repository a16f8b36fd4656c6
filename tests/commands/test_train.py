"""Runs `train.py` end to end, mostly in separate processes."""

import json
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import yaml
from tensorboard.backend.event_processing import event_accumulator

from agents.commands import train
from agents.training.run_folder import checkpoint
from tests.support import command

STEPS = command.SMALL_STEPS
_SECOND_MACHINE = "--cluster", "localhost:1,localhost:2", "--task", "1"


def _divided(output):
  """Returns the lines about settings, reports, and the summary of a run."""
  lines = output.splitlines()
  end = next(index for index, line in enumerate(lines) if line.startswith("Finished"))
  return lines[:6], lines[6:end], lines[end:]


@pytest.mark.slow
def test_output_has_only_the_documented_lines(finished):
  folder, output, _ = finished
  settings, reports, summary = _divided(output)
  assert [line.split()[0] for line in settings] == [
    "task",
    "batch",
    "networks",
    "updates",
    "budget",
    "folder",
  ]
  assert settings[0] == ("task      Pendulum-v1: observations 3 float32, actions 1 float32")
  assert settings[4:] == [f"budget    {STEPS:,} steps", f"folder    {folder}"]
  assert reports.pop(0) == "Compiling the graph; the first update follows."
  (forecast,) = (line for line in reports if line.startswith("forecast"))
  assert re.fullmatch(r"forecast  about 0:\d\d:\d\d from now, including evaluations", forecast)
  reports.remove(forecast)
  assert all(
    re.fullmatch(
      r"(train|eval )   step [\d,]+/2,000   return (-[\d.]+|no episode ended)"
      r"(   [\d,]+ steps/s)?(   0:\d\d:\d\d left)?",
      line,
    )
    for line in reports
  )
  # The second epoch is the first one without compilation.
  assert [line.endswith(" left") for line in reports] == [
    "step 200/" not in line for line in reports
  ]
  *text, _, _, _ = summary
  evaluated = command.rows(folder)[-1]["return_mean"]
  assert re.fullmatch(
    rf"Finished {STEPS:,} steps\. Return {evaluated:,.1f} at the end, .*\. "
    r"Speed: [\d,]+ steps/s.*\. Time: .*compiling \d+%.*\."
    # Only if evaluations take more than a fifth of the time.
    r"( To spend less time on evaluations, raise eval_every \(100\) or lower "
    r"eval_episodes \(3\)\.)?",
    " ".join(text),
  )
  assert summary[-3:] == [
    f"To extend: python {command.ROOT}/train.py {folder} --steps {2 * STEPS}",
    f"To watch: python {command.ROOT}/visualize.py {folder}",
    f"To compare: tensorboard --logdir {folder.parent}",
  ]


@pytest.mark.slow
def test_no_line_of_the_output_is_wider_than_100_columns(finished):
  folder, output, _ = finished
  assert all(len(line) <= 100 for line in output.splitlines() if str(folder.parent) not in line)


@pytest.mark.slow
def test_nothing_is_written_to_the_current_folder(finished):
  assert not list(finished[2].iterdir())


@pytest.mark.slow
def test_run_folder_has_all_files_and_settings(finished):
  folder = finished[0]
  assert folder.name.endswith("-pendulum")
  (summary,) = folder.glob("events.out.*")  # Text and HParams of TensorBoard.
  assert {path.name for path in folder.iterdir()} == {
    "config.yaml",
    "versions.yaml",
    "code.yaml",
    "checkpoints",
    "lock",
    "metrics.jsonl",
    "train",
    "eval",
    summary.name,
  }
  saved = [checkpoint.load(path)[1]["step"] for path in checkpoint.paths(folder / "checkpoints")]
  assert (saved[0], saved[-1], len(saved)) == (0, STEPS, 9)
  text = (folder / "config.yaml").read_text()
  assert "!" not in text
  config = yaml.safe_load(text)
  assert config["env"]["id"] == "Pendulum-v1"
  assert config["num_envs"] == 4
  assert config["steps"] == STEPS


@pytest.mark.slow
def test_metrics_rows_have_all_fields_with_consistent_values(finished):
  rows = [json.loads(line) for line in (finished[0] / "metrics.jsonl").read_text().splitlines()]
  train = [row for row in rows if row["phase"] == "train"]
  evals = [row for row in rows if row["phase"] == "eval"]
  assert [row["step"] for row in train] == list(range(200, STEPS + 1, 200))
  assert evals[-1]["step"] == STEPS
  common = {
    "phase",
    "step",
    "seconds",
    "episodes",
    "return_mean",
    "return_std",
    "return_min",
    "return_max",
    "length_mean",
  }
  parts = {
    f"{part}_share"
    for part in (
      "stepping",
      "crossing",
      "inference",
      "exchange",
      "learning",
      "evaluation",
      "compiling",
      "rest",
    )
  }
  assert all(
    set(row)
    == common
    | parts
    | {"steps_per_second", "step_limit", "limit_share", "warnings", "restarts"}
    | {"trainer_memory", "worker_memory"}
    for row in train
  )
  assert all(100 < row["trainer_memory"] < 10_000 for row in train)
  assert all(10 < row["worker_memory"] < 10_000 for row in train)
  assert all(set(row) == common for row in evals)
  # Four environments have episodes of 200 steps, which end at training steps
  # 800 and 1600.
  assert [row["episodes"] for row in train] == [0, 0, 0, 4, 0, 0, 0, 4, 0, 0]
  assert all((row["return_mean"] is None) == (row["episodes"] == 0) for row in train)
  assert {row["length_mean"] for row in train} == {None, 200.0}
  assert all(row["episodes"] == 3 for row in evals)
  for row in evals:
    assert row["return_min"] <= row["return_mean"] <= row["return_max"] < 0
  seconds = [row["seconds"] for row in rows]
  assert seconds == sorted(seconds) and seconds[0] > 0
  # The first epoch compiles, so the first row has no speed.
  assert train[0]["steps_per_second"] is None
  assert all(row["steps_per_second"] > 0 for row in train[1:])
  # The shares add up to the complete time.
  assert all(0 <= row[part] <= 1 for row in train for part in parts)
  assert all(sum(row[part] for part in parts) == pytest.approx(1) for row in train)
  assert train[0]["compiling_share"] > 0.5
  assert all(row["compiling_share"] == 0 for row in train[1:])
  for row in train[1:]:
    assert row["limit_share"] == pytest.approx(row["steps_per_second"] / row["step_limit"])
    assert 0 < row["limit_share"] < 1


def _tags(folder, phase):
  """Returns the steps of each tag in the TensorBoard events."""
  events = event_accumulator.EventAccumulator(str(folder / phase), size_guidance={"tensors": 0})
  events.Reload()
  return {tag: [event.step for event in events.Tensors(tag)] for tag in events.Tags()["tensors"]}


@pytest.mark.slow
def test_tensorboard_has_all_tags_at_the_reported_steps(finished):
  tags = {phase: _tags(finished[0], phase) for phase in ("train", "eval")}
  weights = [
    f"{network}/{layer}/{part}"
    for network in ("policy", "value")
    for layer in ("hidden_0", "hidden_1", "output")
    for part in ("kernel", "bias")
  ]
  assert tags["eval"].keys() == {
    "score/return",
    "score/length",
    *(f"{kind}_norms/{name}" for kind in ("weight", "gradient") for name in weights),
    "weight_norms/policy/log_std",
    "gradient_norms/policy/log_std",
  }
  assert tags["train"].keys() == {
    "histograms/actions",
    "histograms/advantages",
    "histograms/observations",
    "score/return",
    "score/length",
    "losses/policy_loss",
    "losses/value_loss",
    "losses/grad_norm",
    "losses/policy_grad_norm",
    "losses/value_grad_norm",
    "losses/explained_variance",
    "losses/learning_rate",
    "losses/value_mean",
    "policy/kl",
    "policy/entropy",
    "policy/clip_fraction",
    "policy/action_std",
    "policy/action_saturation",
    "normalization/observ_clipped",
    "normalization/observ_mean",
    "normalization/observ_std",
    "normalization/reward_scale",
    "performance/steps_per_second",
    "performance/stepping_share",
    "performance/crossing_share",
    "performance/inference_share",
    "performance/exchange_share",
    "performance/learning_share",
    "performance/evaluation_share",
    "performance/compiling_share",
    "performance/rest_share",
    "performance/step_limit",
    "performance/limit_share",
    "performance/trainer_memory",
    "performance/worker_memory",
    "reliability/restarts",
  }
  assert tags["train"]["policy/kl"] == list(range(200, STEPS + 1, 200))
  assert tags["train"]["score/return"] == [800, 1600]


@pytest.mark.slow
def test_folder_name_and_config_contain_the_preset(finished_paper):
  folder, output, cwd = finished_paper
  assert folder.name.endswith("-pendulum-paper")
  config = yaml.safe_load((folder / "config.yaml").read_text())
  algorithm = config["algorithm"]
  assert algorithm["segment_length"] is None
  assert (algorithm["discount"], algorithm["kl_penalty"]) == (0.995, 1.0)
  assert config["network"]["policy_layers"] == [200, 100]
  assert (config["steps"], config["seed"]) == (command.PAPER_STEPS, 1)
  # The command line overrides the preset.
  assert (config["num_envs"], algorithm["update_every"], algorithm["update_epochs"]) == (4, 6, 2)
  settings, reports, summary = _divided(output)
  assert settings[3] == ("updates   batches of 6 whole episodes, 2 epochs of minibatches of 1,000")
  assert summary[0] == "Finished 600 steps."
  assert all(line.startswith(("train", "eval", "forecast")) for line in reports)
  assert not list(cwd.iterdir())


@pytest.mark.slow
def test_paper_updates_learn_from_whole_episodes(finished_paper):
  rows = command.rows(finished_paper[0])
  train = [row for row in rows if row["phase"] == "train"]
  # Each update uses six episodes of 20 steps. The last one exceeds the budget.
  assert [row["step"] for row in train] == list(range(120, 601, 120))
  assert all(row["episodes"] == 6 for row in train)
  assert all(row["episodes"] == 2 for row in rows if row["phase"] == "eval")
  assert {row["length_mean"] for row in rows} == {20.0}
  tags = _tags(finished_paper[0], "train")
  assert {"policy/kl_penalty", "policy/kl_cutoff"} <= tags.keys()
  assert "policy/clip_fraction" not in tags
  assert tags["score/return"] == [row["step"] for row in train]


@pytest.mark.slow
def test_resume_with_larger_budget_extends_the_run(finished, tmp_path):
  before = command.rows(finished[0])
  copy = tmp_path / "copy"
  subprocess.run(["cp", "-r", finished[0], copy], check=True)
  done = command.run("train.py", copy, "--steps", "2600", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  assert "Settings that differ" not in done.stdout
  assert "2,600 steps, 2,000 of them completed before" in done.stdout
  rejected = command.run("train.py", "--resume", copy, "--steps", "1000", cwd=tmp_path)
  assert rejected.returncode == 2
  assert "which can only grow" in rejected.stdout.replace("\n", " ")
  after = command.rows(copy)
  assert after[: len(before)] == before
  assert after[-1]["phase"] == "eval" and after[-1]["step"] == 2600
  config = yaml.safe_load((copy / "config.yaml").read_text())
  assert config["steps"] == 2600
  assert config["extended_from"] == [command.SMALL_STEPS]


def _stop(args, signum, tmp_path):
  """Starts a run, stops it with a signal, and returns its folder."""
  process = command.start(
    "train.py", *args, "--logdir", tmp_path / "logdir", "--json", cwd=tmp_path
  )

  # Compilation may exceed the time limit for stopping, so the signal is sent
  # after the first report.
  def has_reported():
    return any(path.stat().st_size for path in (tmp_path / "logdir").glob("*/metrics.jsonl"))

  code, output = command.interrupt(process, signum, has_reported)
  folder = command.run_folder(tmp_path / "logdir")
  assert code == 128 + signum
  text, _, _ = output.rpartition("\n{\n")
  assert text.splitlines()[-1].endswith(f"To resume: python {command.ROOT}/train.py {folder}")
  assert "Traceback" not in output
  _, metadata = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
  assert f"Stopped after {metadata['step']:,} steps" in output
  outcome = command.document(output)
  outcome.pop("evaluation")  # The signal may arrive before the first one.
  assert outcome == {
    "path": str(folder),
    "step": metadata["step"],
    "complete": False,
    "exit_code": 128 + signum,
    "reason": f"stopped by {signum.name}",
  }
  return folder


@pytest.mark.slow
def test_sigterm_saves_and_prints_the_resume_command(tmp_path):
  _stop([*command.SMALL, "--steps", "1e6"], signal.SIGTERM, tmp_path)


@pytest.mark.slow
def test_with_json_standard_output_has_only_the_outcome_and_the_last_evaluation(tmp_path):
  arguments = [*command.PAPER, "--steps", "200", "--logdir", "logdir", "--json"]
  done = subprocess.run(
    [sys.executable, command.ROOT / "train.py", *arguments],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=300,
  )
  outcome = json.loads(done.stdout)
  folder = command.run_folder(tmp_path / "logdir")
  last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
  assert outcome == {
    "path": str(folder),
    "step": 240,
    "complete": True,
    "exit_code": 0,
    "reason": "finished",
    "evaluation": last,
  }
  assert last["phase"] == "eval" and "Finished 240 steps." in done.stderr


@pytest.mark.slow
def test_run_stopped_and_resumed_serially_equals_uninterrupted_run(finished_paper, tmp_path):
  folder = _stop([*command.PAPER, "--steps", command.PAPER_STEPS], signal.SIGINT, tmp_path)
  assert len(command.rows(folder)) < len(command.rows(finished_paper[0]))
  done = command.run(  # Earlier versions used this spelling of the option.
    "train.py", "--resume", folder, "--noenv_processes", cwd=tmp_path
  )
  assert done.returncode == 0, done.stdout
  assert command.rows(folder) == command.rows(finished_paper[0])
  command.assert_same_checkpoints(folder, finished_paper[0])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hang", "spin"])
def test_interrupt_ends_a_run_whose_environment_hangs(fault, tmp_path):
  process = command.start(
    "train.py",
    "--config",
    "debug",
    "--logdir",
    tmp_path / "logdir",
    "--set",
    "env.id=tests.toy:Faulty",
    "--set",
    "env.kwargs.fault=" + fault,
    cwd=command.ROOT,
  )

  def has_checkpoint():
    return any((tmp_path / "logdir").glob("*/checkpoints/checkpoint-*.npz"))

  code, output = command.interrupt(process, signal.SIGINT, has_checkpoint)
  assert code == 130
  assert "To resume: " in output
  # On a busy machine, the first epoch is still compiled after six seconds.
  assert "Stopped after 0 steps" in output or "was given up" in output


def _train_with_fault(fault, logdir):
  """Runs `train.py` with environments that have a fault in their first step."""
  args = "--set", "env.id=tests.toy:Faulty", "--set", f"env.kwargs.fault={fault}"
  return command.run("train.py", "--config", "debug", "--logdir", logdir, *args, cwd=command.ROOT)


@pytest.mark.slow
def test_environment_error_is_printed_with_its_own_traceback(tmp_path):
  done = _train_with_fault("raise", tmp_path)
  assert done.returncode == 1
  assert "Environment 0 ('Faulty', seed " in done.stdout
  assert "step 1 of its episode) failed in step()" in done.stdout
  assert "ValueError: faulty step" in done.stdout
  assert "tensorflow" not in done.stdout  # No part of the trainer's traceback.
  assert "Run with --no-env-processes to debug it" in done.stdout


@pytest.mark.slow
def test_killed_worker_is_reported_with_its_signal(tmp_path):
  done = _train_with_fault("kill", tmp_path)
  assert done.returncode == 1
  assert "was killed by SIGKILL" in done.stdout
  assert "Traceback" not in done.stdout


@pytest.mark.parametrize(
  "args, message",
  [
    (["--confg", "cheetah"], "unrecognized arguments: --confg"),
    ([], "name a --config"),
    (["--config", "cheeta"], "Did you mean 'cheetah'?"),
    (["--config", "no/such.py"], "no Python file has this name"),
    (
      ["--config", "cheetah", "--set", "algorithm.learning_rat=1"],
      "Algorithm has no field 'learning_rat'. Did you mean 'algorithm.learning_rate'?",
    ),
    (["--config", "cheetah", "--set", "num_envs"], "expected key=value"),
    (["--config", "cheetah", "--set", "num_envs=many"], "`num_envs` must be of type int"),
    (
      ["--config", "cheetah", "--set", "algorithm.discount=1.2"],
      "`algorithm.discount` must lie in (0, 1]. Received: 1.2.",
    ),
    (
      ["--config", "cheetah", "--set", "algorithm.minibatch_size=100"],
      "must divide num_envs * segment_length",
    ),
    (["--config", "cheetah", "--steps", "few"], "`steps` must be of type int"),
    (["--config", "cheetah", "--set", "env.id=HalfCheeta-v5"], "Did you mean: `HalfCheetah`?"),
    (["--config", "cheetah", "--set", "env.id=Maze-v0"], "name its module: env.id=MODULE:Maze-v0."),
    (
      ["--config", "cheetah", "--set", "env.kwargs.no_such=1"],
      "unexpected keyword argument 'no_such'",
    ),
    (["--config", "cheetah", "--set", "env.id=no_module:Env"], "No module named 'no_module'"),
    (["--config", "cheetah", "--set", "algorithm.symmetry=true"], "no known mirror image"),
    (["--config", "cheetah", "--logdir", "/proc/no"], "can't make"),
    (["--resume", "/no/such/run"], "is not a run folder"),
    (["--config", "cheetah", "--code", "."], "--code needs an existing run"),
    (
      ["--config", "cheetah", "--cluster", "a:1,b:1", "--task", "0"],
      "a cluster needs --cluster-secret-file FILE.",
    ),
    (["--resume", "/no/such/run", "--seed", "1"], "--seed can't change an existing run"),
    (["--resume", "/no/such/run", "--set", "seed=1"], "start a new run: --from /no/such/run."),
    (["--from", "/no/such/run"], "is not a run folder"),
    (["--config", "cheetah", "--set", "forked_from=[a@1]"], "--set forked_from: start from"),
    (["--config", "cheetah", "--minutes", "0"], "--minutes must be positive"),
    (["--config", "cheetah", "--until", "nan"], "--until must be a finite number"),
    (
      [
        "--config",
        "cheetah",
        "--until",
        "1",
        "--cluster",
        "localhost:1,localhost:2",
        "--task",
        "0",
      ],
      "--from, --until and --minutes need a single machine",
    ),
    (
      ["--resume", "run", *_SECOND_MACHINE, "--print-config"],
      "which only machine 0 (--task 0) has.",
    ),
    (["--resume", "run", *_SECOND_MACHINE, "--seed", "3"], "--seed can't change an existing run"),
    (["--config", "cheetah", "--set", "env.kwargs.x=2020-13-45"], "the value can't be read"),
    (["--config", "cheetah", "--set", "env.kwargs.xml_file=missing.xml"], "missing.xml"),
    (["--config", "cheetah", "--set", "env.id=tests.toy:Nothing"], "tests.toy has no 'Nothing'"),
    (["--config", "cheetah", "--set", "logger=nowhere:Logger"], "No module named 'nowhere'"),
    (["--config", "cheetah", "--preset", "papr"], "Did you mean 'paper'?"),
    (["--resume", "/no/such/run", "--preset", "paper"], "--preset can't change an existing run"),
    (
      ["--config", "cheetah", "--preset", "paper", "--set", "env.id=tests.toy:Counter"],
      "registers no time limit",
    ),
    (
      ["--config", "cheetah", "--preset", "paper", "--set", "env.id=HalfCheeta-v5"],
      "Did you mean: `HalfCheetah`?",
    ),
    (["--config", "default", "--preset", "paper"], "env.id is empty"),
    (
      ["--config", "cheetah", "--preset", "paper", "--set", "num_envs=31"],
      "must be at least num_envs = 31",
    ),
    (
      ["--config", "cheetah", "--set", "algorithm.update_every=64"],
      "one of `segment_length` and `update_every` must be null",
    ),
  ],
)
def test_user_errors_exit_2_without_traceback(args, message, tmp_path, monkeypatch, capsys):
  if args and "--logdir" not in args and "--resume" not in args:
    args = [*args, "--logdir", str(tmp_path / "logdir")]
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", [*sys.path])
  with pytest.raises(SystemExit) as ended:
    train.main(args)
  assert ended.value.code == 2
  printed = capsys.readouterr()
  assert message in printed.err and not printed.out
  assert "Traceback" not in printed.err
  assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_error_while_building_the_trainer_leaves_no_run_folder(tmp_path):
  (tmp_path / "wide.py").write_text("""\
import gymnasium
class Wide(gymnasium.Env):
  observation_space = gymnasium.spaces.Box(-1, 1, (1,))
  action_space = gymnasium.spaces.Box(-float("inf"), float("inf"), (1,))
""")
  done = command.run(
    "train.py",
    "--config",
    "pendulum",
    "--logdir",
    tmp_path / "logdir",
    "--set",
    "network.action_distribution=beta",
    "--set",
    "env.id=wide:Wide",
    cwd=tmp_path,
  )
  assert done.returncode == 2
  assert "beta" in done.stdout and "Traceback" not in done.stdout
  assert not list((tmp_path / "logdir").iterdir())


@pytest.mark.slow
def test_missing_gpu_is_an_error_without_run_folder(tmp_path):
  done = command.run(
    "train.py",
    *command.SMALL,
    "--steps",
    "200",
    "--device",
    "gpu",
    "--logdir",
    tmp_path,
    cwd=tmp_path,
  )
  assert done.returncode == 2
  assert "device=gpu, but TensorFlow finds no GPU" in done.stdout
  assert "Traceback" not in done.stdout
  assert not list(tmp_path.iterdir())


def test_help_does_not_import_tensorflow():
  code = (
    "import sys\nfrom agents.commands import train\n"
    "try: train.main(['--help'])\n"
    "except SystemExit: pass\n"
    "print('tensorflow' in sys.modules)"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=command.ROOT, capture_output=True, text=True, check=True
  )
  assert "--set KEY=VALUE" in done.stdout
  assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.slow
def test_killed_and_resumed_run_equals_uninterrupted_run(tmp_path):
  """Kills the run at two random moments."""
  args = [
    "--config",
    "hopper",
    "--steps",
    "10000",
    "--set",
    "eval_episodes=2",
    "--set",
    "eval_every=5000",
  ]
  done = command.run("train.py", *args, "--logdir", tmp_path / "expected", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  expected = command.run_folder(tmp_path / "expected")
  seconds = json.loads((expected / "metrics.jsonl").read_text().splitlines()[-1])["seconds"]

  rng = random.Random(" ".join(args))
  # Tracing the graph changes no result.
  process = command.start(
    "train.py", *args, "--trace-graph", "--logdir", tmp_path / "killed", cwd=tmp_path
  )
  for _ in range(2):
    # The command prints the folder just before the first epoch.
    while not process.stdout.readline().startswith("folder"):
      assert process.poll() is None
    # A run cannot resume before its first checkpoint.
    while not any((tmp_path / "killed").glob("*/checkpoints/checkpoint-*.npz")):
      assert process.poll() is None
    time.sleep(rng.uniform(0, 0.4 * seconds))
    assert process.poll() is None, "Ended before it could be killed."
    process.kill()
    process.communicate()
    killed = command.run_folder(tmp_path / "killed")
    process = command.start("train.py", "--resume", killed, cwd=tmp_path)
  output, _ = process.communicate()
  assert process.returncode == 0, output
  assert command.rows(killed) == command.rows(expected)
  command.assert_same_checkpoints(killed, expected)
  graph = event_accumulator.EventAccumulator(str(killed / "train")).Reload().Graph()
  assert "EagerPyFunc" in {node.op for node in graph.node}  # Calls the environments.
  assert any("learn" in each.signature.name for each in graph.library.function)


@pytest.mark.slow
def test_training_with_the_paper_preset_solves_cartpole(tmp_path):
  done = command.run(
    "train.py",
    "--config",
    "cartpole",
    "--preset",
    "paper",
    "--steps",
    "60000",
    "--set",
    "eval_every=60000",
    "--logdir",
    tmp_path / "logdir",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  last = command.rows(command.run_folder(tmp_path / "logdir"))[-1]
  assert last["phase"] == "eval" and last["return_mean"] >= 463
