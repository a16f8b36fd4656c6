"""PPO, its components, and the base class of custom algorithms."""
