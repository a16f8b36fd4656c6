"""Legged robots that walk with commanded velocities.

The import registers Gymnasium's ids `robots/go1-v0` and so on. The id
`robots/custom-v0` needs the argument `robot`, the path of an MJCF file.
"""

import gymnasium

from agents.robots import robot

PREFIX = "robots/"
_STEPS = 1000  # Time limit: 20 seconds.

for name in (*robot.ROBOTS, "custom"):
  gymnasium.register(
    f"{PREFIX}{name}-v0",
    "agents.robots.velocity_env:VelocityEnv",
    max_episode_steps=_STEPS,
    kwargs={} if name == "custom" else {"robot": name},
  )
