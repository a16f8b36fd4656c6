import pytest

from benchmarks import ablation, learning
from benchmarks.common import scored_runs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cheetah", "hopper", "humanoid"])
def test_every_variant_is_a_valid_change_of_the_config(name):
  base = scored_runs.Job(name, 1_000_000, 5)
  jobs = {job.variant: job for job in ablation.make_jobs([base])}
  assert jobs.pop("") == base
  paper = jobs.pop(ablation.PAPER)
  assert paper.config.algorithm.update_every and paper.config.seed == 5
  assert len(jobs) >= 7
  assert len({repr(job.config) for job in jobs.values()}) == len(jobs)
  for job in jobs.values():
    assert job.config != base.config and job.config.env == base.config.env


def test_variants_without_a_change_are_left_out():
  def variants(name):
    base = scored_runs.Job(name, 1_000, 0)
    return {job.variant for job in ablation.make_jobs([base])}

  # The config `humanoid` has these two settings already.
  assert variants("cheetah") - variants("humanoid") == {
    "step size held by the KL",
    "advantages normalized in each minibatch",
  }
  assert variants("humanoid") < variants("cheetah")


def test_table_has_a_line_per_variant_and_a_column_per_config():
  def row(config, variant, score):
    return {"config": config, "variant": variant, "mean_action": str(score)}

  rows = [
    row("cheetah", "", 6000),
    row("hopper", "", 3000),
    row("cheetah", "initial std 1", 1000),
    row("cheetah", ablation.PAPER, 100),
    row("hopper", ablation.PAPER, 60),
  ]
  assert ablation.table(rows).splitlines() == [
    "| mean action    | cheetah | hopper |",
    "| -------------- | ------: | -----: |",
    "| the config     |    6000 |   3000 |",
    "| initial std 1  |    1000 |  as is |",
    "| --preset paper |     100 |     60 |",
  ]


def test_jobs_combine_all_configs_and_seeds():
  args = learning.make_parser(learning.__doc__, "cheetah,pendulum", "x.csv").parse_args(
    ["--seeds", "5-6"]
  )
  assert learning.make_jobs(args) == [
    scored_runs.Job("cheetah", 1_000_000, 5),
    scored_runs.Job("pendulum", 300_000, 5),
    scored_runs.Job("cheetah", 1_000_000, 6),
    scored_runs.Job("pendulum", 300_000, 6),
  ]
