"""Variants of PPO for particular tasks."""
