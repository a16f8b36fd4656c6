"""Batch PPO: batched reinforcement learning inside the TensorFlow graph.

Nothing is imported here: workers load `agents.environments` and must never pay
for TensorFlow, and the command line answers `--help` without it.
"""
