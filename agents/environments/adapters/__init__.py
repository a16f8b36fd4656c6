"""Interfaces of Gymnasium and Stable-Baselines3 to a batch of environments."""
