"""Cluster descriptions, and names of lost machines."""

import json
import socket

import pytest

from agents import config
from agents.distributed import cluster


def _tf_config(roles, role, index):
  return {"TF_CONFIG": json.dumps({"cluster": roles, "task": {"type": role, "index": index}})}


def test_one_machine_is_no_cluster():
  assert cluster.find(None, None, {}) is None
  assert cluster.find(None, None, {"TF_CONFIG": "{}"}) is None
  assert cluster.find(None, None, _tf_config({"worker": ["a:1"]}, "worker", 0)) is None
  assert cluster.find("a:1", "0", {}) is None


def test_options_describe_a_cluster():
  described = cluster.find("a:1,[::1]:2", "1", {"TF_CONFIG": "unused"})
  assert described == cluster.Cluster(("a:1", "[::1]:2"), 1)


def test_tf_config_names_the_chief_first():
  roles = {"worker": ["b:1", "c:1"], "chief": ["a:1"]}
  addresses = ("a:1", "b:1", "c:1")
  assert cluster.find(None, None, _tf_config(roles, "worker", 1)) == (cluster.Cluster(addresses, 2))
  assert cluster.find(None, None, _tf_config(roles, "chief", 0)) == (cluster.Cluster(addresses, 0))


@pytest.mark.parametrize(
  "addresses, task, message",
  [
    ("a:1,b:1", None, "--cluster and --task belong together"),
    (None, "0", "--cluster and --task belong together"),
    ("a:1,b:1", "2", "2 machines, 0 to 1, but no machine 2"),
    ("a:1,b:1", "one", "expected the index of a machine"),
    ("a:1,b", "0", "'b' is not an address. Expected host:port"),
    ("a:1,b:x", "0", "'b:x' is not an address"),
    ("a:1,a:1", "0", "names an address twice"),
  ],
)
def test_invalid_options_are_errors(addresses, task, message):
  with pytest.raises(config.ConfigError, match=message):
    cluster.find(addresses, task, {})


@pytest.mark.parametrize(
  "environ, message",
  [
    ({"TF_CONFIG": "{"}, "TF_CONFIG can't be used"),
    ({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'}, "can't be used"),
    (_tf_config({"worker": ["a:1"]}, "worker", 1), "has no worker 1"),
    (_tf_config({"worker": ["a:1"], "ps": ["b:1"]}, "ps", 0), "of type ps"),
  ],
)
def test_invalid_tf_config_is_an_error(environ, message):
  with pytest.raises(config.ConfigError, match=message):
    cluster.find(None, None, environ)


def test_lost_machines_are_found_by_error_message_and_connections():
  with socket.create_server(("127.0.0.1", 0)) as server:
    reachable = f"127.0.0.1:{server.getsockname()[1]}"
    three = cluster.Cluster(("127.0.0.1:1", "127.0.0.1:2", reachable), 0)
    assert three.describe_lost("?") == "Lost machine 1 (127.0.0.1:2)."
    # The port of a stopped process still accepts connections.
    assert three.describe_lost("from /job:worker/task:2") == (f"Lost machine 2 ({reachable}).")
    # Machine 1 is unreachable, too, because it ended when it lost machine 2.
    four = cluster.Cluster(("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", reachable), 0)
    assert four.describe_lost("/job:worker/task:2") == ("Lost machine 2 (127.0.0.1:3).")
    two = cluster.Cluster(("127.0.0.1:1", reachable), 0)
    assert two.describe_lost("/job:worker/task:0: /job:worker/task:1") == (
      f"Lost machine 1 ({reachable})."
    )
    assert two.describe_lost("?") == "Lost another machine."
