"""The fixtures of `tests/environments`."""

from tests.environments.conftest import deadline, mode, pool, pools

__all__ = ["deadline", "mode", "pool", "pools"]
