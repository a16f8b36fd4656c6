"""Videos of replayed episodes."""
