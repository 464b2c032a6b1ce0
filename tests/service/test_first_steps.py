"""A user's first steps with the service, in process and with the real server."""

import pytest

from helpers.serving import Local, Server


@pytest.mark.parametrize("kind", [Local, Server])
def test_create_decide_reward(tmp_path, kind):
    with kind(tmp_path / "robandit.db", authenticate=True) as service:
        made = service.call("PUT", "/v1/experiments/provider", {"arms": ["a", "b", "c"], "minimize": True})
        assert (made.status, made.json["state"]) == (201, "running")
        decision = service.call("POST", "/v1/experiments/provider/decisions").json
        assert decision["arm"] == "a"
        reward = service.call("POST", "/v1/experiments/provider/rewards", {"id": decision["id"], "value": 0.83})
        assert (reward.status, reward.json["outcome"]) == (200, "applied")
        shown = service.call("GET", "/v1/experiments/provider").json
        assert shown["counts"] == {"decisions": 1, "rewards": 1, "late": 0, "expired": 0, "open": 0}


def test_a_stopped_server_continues(tmp_path):
    with Server(tmp_path / "robandit.db") as server:
        server.call("PUT", "/v1/experiments/p", {"arms": ["a", "b"]})
        decision = server.call("POST", "/v1/experiments/p/decisions").json
        code, out, err = server.stop()
        assert (code, out, err) == (0, "stopped; everything is stored\n", "")
    with Server(tmp_path / "robandit.db") as server:
        reward = server.call("POST", "/v1/experiments/p/rewards", {"id": decision["id"], "value": 1.5})
        assert reward.json["outcome"] == "applied"
        assert server.call("POST", "/v1/experiments/p/decisions").json["arm"] == "b"
