"""Makes the fixtures of `tests/environments` available here."""

from tests.environments.conftest import deadline, mode, pool, pools

__all__ = ["deadline", "mode", "pool", "pools"]
