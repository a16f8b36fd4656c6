"""The disturbances of the stress report, each with increasing levels."""

from typing import NamedTuple

from agents import config as config_lib
from agents import config_parsing


class Disturbance(NamedTuple):
  """One property of the simulation that the report varies."""

  title: str
  unit: str  # Meaning of a level.
  levels: tuple[float, ...]  # From the mildest to the strongest.


# By the argument of `DomainRandomization` that sets the level.
DISTURBANCES = {
  "push": Disturbance("Pushes", "speed of a push in m/s", (0.25, 0.5, 1, 1.5, 2)),
  "latency": Disturbance("Delay of actions", "steps", (1, 2, 3, 4, 5)),
  "friction": Disturbance("Friction", "factor of friction", (0.8, 0.6, 0.4, 0.2, 0.1)),
  "payload": Disturbance(
    "Payload", "payload as a share of the robot's mass", (0.1, 0.2, 0.3, 0.5, 1)
  ),
  "motor": Disturbance("Motor strength", "factor of motor forces", (0.9, 0.8, 0.7, 0.6, 0.5)),
  "noise": Disturbance(
    "Sensor noise", "standard deviation in units of the observation", (0.01, 0.02, 0.05, 0.1, 0.2)
  ),
}


def select(text: str | None) -> list[str]:
  """Returns names of disturbances.

  Args:
    text: Names with commas, such as "push,noise"; None selects all.

  Raises:
    ConfigError: If a name is unknown or repeated.
  """
  if text is None:
    return list(DISTURBANCES)
  names = text.split(",")
  for name in names:
    if name not in DISTURBANCES:
      raise config_lib.ConfigError(
        f"--disturbances: '{name}' is not a disturbance."
        f"{config_parsing.did_you_mean(name, DISTURBANCES)} "
        f"Disturbances: {', '.join(DISTURBANCES)}."
      )
  if len(set(names)) < len(names):
    raise config_lib.ConfigError(f"--disturbances: a name is repeated. Received: {text}.")
  return names
