"""Configs of run folders execute no code without permission."""

import importlib.util
import sys

import pytest

from agents import config as config_lib
from agents import configs, trained_policy
from agents.commands import export, replay, train, visualize
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.run_folder import import_guard, run_folder, user_modules


@pytest.fixture
def shared(tmp_path, monkeypatch):
  """A folder of another person, with modules that create `proof` when executed.

  It is the current folder and on Python's path, as with `python -m`.
  """
  folder = tmp_path / "shared"
  code = f"import os\nos.mkdir({str(tmp_path / 'proof')!r})\n"
  for name in (
    "guarded_evil.py",
    "guarded-evil.py",
    "guarded_run/evil.py",
    "guarded_package/__init__.py",
    "guarded_package/fine.py",
    "dm_control/suite.py",
  ):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(code if "fine" not in name else "")
  monkeypatch.chdir(folder)
  monkeypatch.syspath_prepend(folder)
  return folder


def _config(changes):
  return config_lib.Config().override({"env.id": "Pendulum-v1", **changes})


@pytest.mark.parametrize(
  "changes, file",
  [
    ({"env.id": "guarded_evil:X"}, "guarded_evil.py"),
    ({"env.id": "guarded-evil:X"}, "guarded-evil.py"),
    ({"env.id": "guarded_evil:X-v0"}, "guarded_evil.py"),
    # The import executes the file before it fails.
    ({"env.id": "guarded_evil.missing:X"}, "guarded_evil.py"),
    ({"network.hidden": "guarded_evil.:X"}, "guarded_evil.py"),
    ({"logger": "guarded_evil:X"}, "guarded_evil.py"),
    ({"env.id": "guarded_run.evil.missing:X"}, "guarded_run/evil.py"),
    ({"env.id": "guarded_run.evil:X"}, "guarded_run/evil.py"),
    ({"env.id": "guarded_package.fine:X"}, "guarded_package/fine.py"),
    ({"env.id": "gymnasium:make", "env.kwargs.id": "guarded_evil:X-v0"}, "guarded_evil.py"),
    pytest.param(
      {"env.id": "dm_control/cartpole-balance-v0"},
      "dm_control/suite.py",
      marks=pytest.mark.skipif(
        importlib.util.find_spec("dm_control") is not None,
        reason="The installed package comes first.",
      ),
    ),
    ({"env.backend": "guarded_evil:X"}, "guarded_evil.py"),
    ({"env.wrappers": [{"guarded_evil:X": {}}]}, "guarded_evil.py"),
    ({"env.wrappers": [{"TimeLimit": {"a": ["guarded_evil:X"]}}]}, "guarded_evil.py"),
    ({"algorithm.type": "guarded_evil:X"}, "guarded_evil.py"),
    ({"network.hidden": "guarded_evil:X"}, "guarded_evil.py"),
  ],
)
@pytest.mark.parametrize("on_path", [True, False])
def test_modules_beside_a_run_folder_are_refused_before_they_run(changes, file, on_path, shared):
  if not on_path:
    sys.path.remove(str(shared))
  with pytest.raises(config_lib.ConfigError) as caught:
    import_guard.check(_config(changes), shared / "run")
  module = file.removesuffix(".py").replace("/", ".")
  assert f"names the module '{module}', which would execute {shared / file}." in str(caught.value)
  assert str(caught.value).endswith(f"--code {shared}")
  assert not (shared.parent / "proof").exists()


def test_every_command_that_uses_a_run_folder_refuses_its_modules(shared, capsys):
  run = run_folder.create(str(shared), "run", _config({}))
  crash = crash_folder.save(run, 0, failure_budget.Failure("failed"))
  for folder in (run.path, crash):
    (folder / "config.yaml").write_text(config_lib.dump(_config({"env.id": "guarded_evil:X"})))
  proof = shared.parent / "proof"
  commands = [
    (train.main, "--resume", shared),
    (visualize.main, shared),
    (export.main, shared, "--out", shared / "out"),
    (replay.main, crash),
  ]
  for main, *arguments in commands:
    with pytest.raises(SystemExit) as caught:
      main([*map(str, arguments)])
    assert caught.value.code == 2
    assert f"execute {shared / 'guarded_evil.py'}." in capsys.readouterr().err
  with pytest.raises(config_lib.ConfigError, match="which would execute"):
    trained_policy.load(shared)
  assert not proof.exists()
  for main, *arguments in commands:
    with pytest.raises(SystemExit):
      main([*map(str, arguments), "--code", str(shared)])
    assert "would execute" not in capsys.readouterr().err
  with pytest.raises(config_lib.ConfigError, match="has no 'X'"):
    trained_policy.load(shared, code=[shared])
  assert proof.exists()


def test_submodules_of_loaded_packages_are_refused(shared, monkeypatch):
  # The package `agents` of a checkout extends its path by the checkout.
  import agents

  monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(shared)])
  with pytest.raises(config_lib.ConfigError, match=r"'agents.guarded_evil', which would execute"):
    import_guard.check(_config({"env.id": "agents.guarded_evil:X"}), shared / "run")


def test_package_of_a_missing_module_is_refused(shared):
  with pytest.raises(
    config_lib.ConfigError, match="'guarded_package', which would execute"
  ) as caught:
    import_guard.check(_config({"env.id": "guarded_package.missing:X"}), shared / "run")
  assert str(caught.value).endswith(f"--code {shared}")


def test_permission_for_a_module_does_not_include_its_neighbours(shared, monkeypatch):
  user_modules.record(_config({"env.id": "guarded_package.fine:X"}))
  user_modules.record(_config({"env.id": "guarded_evil:X"}))
  monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(shared)])
  config = _config({"env.id": "guarded_evil:X", "network.hidden": "guarded_run.evil.missing:X"})
  with pytest.raises(config_lib.ConfigError, match="'guarded_run.evil', which would execute"):
    import_guard.check(config, shared / "run")


def test_installed_modules_are_permitted(shared):
  for changes in (
    {"env.id": "HalfCheetah-v5"},
    {"env.id": "gymnasium.envs.classic_control.pendulum:PendulumEnv"},
    {"env.kwargs.time": "12:30", "env.kwargs.site": "https://example.com"},
    {"algorithm.type": "agents.algorithms.ppo:BatchPPO"},
    {"network.hidden": "missing_module:X"},  # The import reports it.
    {"network.hidden": "gymnasium.missing:X"},
  ):
    import_guard.check(_config(changes), shared / "run")


def test_named_configs_are_permitted(tmp_path):
  for name in configs.names():
    import_guard.check(configs.load(name)[1], tmp_path)


def test_modules_in_a_run_folder_are_refused_in_an_allowed_folder(shared):
  config = _config({"env.id": "guarded_run.evil:X"})
  with pytest.raises(config_lib.ConfigError, match="is in this folder. Move it"):
    import_guard.check(config, shared / "guarded_run", [shared])
  import_guard.check(config, shared / "run", [shared])


def test_missing_allowed_folder_is_an_error(shared):
  with pytest.raises(config_lib.ConfigError, match="--code .*nowhere: there is no such folder"):
    import_guard.check(_config({}), shared / "run", ["nowhere"])


def test_modules_of_own_runs_are_permitted_until_they_change(shared):
  config = _config({"env.id": "guarded_package.fine:X"})
  user_modules.record(config)
  import_guard.check(config, shared / "run")
  # Another module of the same package was not part of the run.
  (shared / "guarded_package" / "deploy.py").write_text("")
  with pytest.raises(config_lib.ConfigError, match="not belong to an installed package"):
    import_guard.check(_config({"env.id": "guarded_package.deploy:X"}), shared / "run")
  (shared / "guarded_package" / "__init__.py").write_text("changed = True")
  with pytest.raises(config_lib.ConfigError, match="has changed since a run of yours used it"):
    import_guard.check(config, shared / "run")


@pytest.mark.parametrize(
  "wrapper",
  [
    {"RecordVideo": {"video_folder": "/tmp/elsewhere"}},
    {"gymnasium.wrappers.rendering:RecordVideo": {"video_folder": "/tmp/elsewhere"}},
    {"ArrayConversion": {"env_xp": "guarded_evil", "target_xp": "guarded_evil"}},
    {"gymnasium.envs.classic_control.pendulum:PendulumEnv": {}},
  ],
)
def test_wrappers_with_side_effects_are_refused_except_in_own_runs(wrapper, shared):
  config = _config({"env.wrappers": [wrapper]})
  with pytest.raises(config_lib.ConfigError, match="names the wrapper .* --code /.*gymnasium"):
    import_guard.check(config, shared / "run")
  user_modules.record(config)
  import_guard.check(config, shared / "run")
  ((name, arguments),) = wrapper.items()
  other = _config({"env.wrappers": [{name: {**arguments, "video_folder": "/tmp/other"}}]})
  with pytest.raises(config_lib.ConfigError, match="names the wrapper"):
    import_guard.check(other, shared / "run")
  (folder,) = {each.rpartition("/")[0] for each in map(str, sys.modules["gymnasium"].__path__)}
  import_guard.check(other, shared / "run", [folder])


def test_harmless_wrappers_are_permitted(shared):
  wrappers = [
    {"RecordEpisodeStatistics": {}},
    {"gymnasium.wrappers:TimeAwareObservation": {}},
    {"agents.environments.making.wrappers:FrameDelta": {}},
  ]
  import_guard.check(_config({"env.wrappers": wrappers}), shared / "run")
