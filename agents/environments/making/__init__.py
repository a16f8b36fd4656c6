"""Construction of environments from the `env` section of a config."""
