"""Trains PPO of Stable-Baselines3, and scores its policies.

    python -m benchmarks.peers.sb3_scores --env Acrobot-v1 --budgets 5e4,1e5

Prints the score after each budget as one line of JSON. PPO has its default
settings, or those of the RL Zoo with `--zoo`. Neither depends on the budget, so
one run has the policies of all budgets. A run ends with the update that reaches
the budget. Training runs in one thread.
"""

import json
import time
from typing import Any

from agents import config as config_lib
from benchmarks.common import command_line
from benchmarks.peers import sb3

_LANDER = {
  "n_envs": 16,
  "n_steps": 1024,
  "batch_size": 64,
  "gae_lambda": 0.98,
  "gamma": 0.999,
  "n_epochs": 4,
  "ent_coef": 0.01,
}
# RL Zoo, hyperparams/ppo.yml, commit 00128b5. The landers have version 2 there.
ZOO: dict[str, dict[str, Any]] = {
  "Acrobot-v1": {
    "n_envs": 16,
    "normalize": True,
    "n_steps": 256,
    "gae_lambda": 0.94,
    "gamma": 0.99,
    "n_epochs": 4,
    "ent_coef": 0.0,
  },
  "MountainCar-v0": {
    "n_envs": 16,
    "normalize": True,
    "n_steps": 16,
    "gae_lambda": 0.98,
    "gamma": 0.99,
    "n_epochs": 4,
    "ent_coef": 0.0,
  },
  "MountainCarContinuous-v0": {
    "n_envs": 1,
    "normalize": True,
    "batch_size": 256,
    "n_steps": 8,
    "gamma": 0.9999,
    "learning_rate": 7.77e-05,
    "ent_coef": 0.00429,
    "clip_range": 0.1,
    "n_epochs": 10,
    "gae_lambda": 0.9,
    "max_grad_norm": 5,
    "vf_coef": 0.19,
    "use_sde": True,
    "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
  },
  "LunarLander-v3": _LANDER,
  "LunarLanderContinuous-v3": _LANDER,
  "BipedalWalker-v3": {
    "n_envs": 32,
    "normalize": True,
    "n_steps": 2048,
    "batch_size": 64,
    "gae_lambda": 0.95,
    "gamma": 0.999,
    "n_epochs": 10,
    "ent_coef": 0.0,
    "learning_rate": 3e-4,
    "clip_range": 0.18,
  },
}


def train(
  config: config_lib.Config, budgets: list[int], num_episodes: int, settings: dict[str, Any]
) -> dict[int, dict[str, float]]:
  """Trains until the largest budget and evaluates the policy after each one.

  Args:
    config: Environment and seed of the run.
    budgets: Environment steps, in increasing order.
    num_episodes: Number of episodes of each evaluation, with the most probable
      actions.
    settings: Arguments of PPO, "n_envs" and "normalize".

  Returns:
    By budget: mean "mean_action" and standard deviation "mean_action_std" of
    the returns, and "seconds" of training.
  """
  stable_baselines3 = sb3.library()
  import torch
  from stable_baselines3.common import evaluation, vec_env

  torch.set_num_threads(1)
  arguments = dict(settings)
  env = sb3.vector_env(config, arguments.pop("n_envs", 1))
  eval_env = sb3.vector_env(config.override({"seed": config.seed + 10_000}), 1)
  if normalize := arguments.pop("normalize", False):
    env = vec_env.VecNormalize(env, gamma=arguments["gamma"])
    eval_env = vec_env.VecNormalize(eval_env, training=False, norm_reward=False)
  model = stable_baselines3.PPO(
    sb3.policy(env.observation_space), env, device="cpu", seed=config.seed, **arguments
  )
  results, seconds = {}, 0.0
  for steps in budgets:
    start = time.perf_counter()
    model.learn(steps - model.num_timesteps, reset_num_timesteps=False)
    seconds += time.perf_counter() - start
    if normalize:
      vec_env.sync_envs_normalization(env, eval_env)
    mean, std = evaluation.evaluate_policy(model, eval_env, num_episodes, deterministic=True)
    results[steps] = {"mean_action": mean, "mean_action_std": std, "seconds": seconds}
  env.close()
  eval_env.close()
  return results


def main(argv: list[str] | None = None) -> None:
  """Trains, and prints the scores."""
  parser = command_line.make_parser(__doc__, set="")
  parser.add_argument("--env", required=True, help="id of the environment")
  parser.add_argument("--budgets", required=True, help="environment steps, separated by commas")
  parser.add_argument("--seed", default="0", help="random seed")
  parser.add_argument("--episodes", type=int, default=20, help="number of evaluation episodes")
  parser.add_argument("--zoo", action="store_true", help="apply the settings of the RL Zoo")
  args = parser.parse_args(argv)
  changes = dict(map(config_lib.parse_setting, args.set))
  config = config_lib.Config().override({"env.id": args.env, "seed": args.seed, **changes})
  budgets = sorted(int(float(steps)) for steps in args.budgets.split(","))
  settings = ZOO[args.env] if args.zoo else {}
  results: dict[Any, Any] = train(config, budgets, args.episodes, settings)
  print(json.dumps(results))


if __name__ == "__main__":
  main()
