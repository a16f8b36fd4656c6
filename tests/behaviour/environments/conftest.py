"""The fixtures of `tests/environments`."""

from tests.environments.conftest import deadline
from tests.environments.conftest import mode
from tests.environments.conftest import pool
from tests.environments.conftest import pools

__all__ = ["deadline", "mode", "pool", "pools"]
