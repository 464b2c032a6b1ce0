"""Guarantee 6: 64-bit floats end to end. The value sent is the value in the answer, in the log, and in the bandit."""

import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.serving import Local
from robandit.decisions.experiment import LiveExperiment

P = "/v1/experiments/{}"
LARGEST, SMALLEST = 1e150, 1e-130
VALUES = st.one_of(
    st.floats(-LARGEST, LARGEST, allow_nan=False).filter(lambda x: x == 0.0 or abs(x) >= SMALLEST),
    st.sampled_from([0.0, -0.0, 1e150, -1e150, 1e-130, -1e-130, 0.1, 1 / 3, 2.0**53 + 2.0, math.nextafter(1e150, 0.0)]),
    st.integers(-(10**18), 10**18),
)


def bits(value):
    return struct.pack("<d", value)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("floats") / "robandit.db") as local:
        yield local


@settings(max_examples=amount(25, 500), deadline=None, derandomize=True, database=None)
@given(values=st.lists(VALUES, min_size=1, max_size=12), batched=st.booleans(), minimize=st.booleans())
def test_values_keep_their_bits(local, values, batched, minimize):
    path = P.format("p")
    local.call("PUT", path, {"arms": ["a", "b"], "policy": "AdaRUCB", "seed": 1, "minimize": minimize})
    direct = rb.Bandit(["a", "b"], rb.AdaRUCB(), 1, minimize=minimize, compile="never")
    try:
        items = [{"id": str(i), "arm": "ab"[i % 2]} for i in range(len(values))]
        local.call("POST", f"{path}/decisions/batch", {"items": items})
        rewards = [{"id": str(i), "value": value} for i, value in enumerate(values)]
        if batched:
            answers = [
                each["reward"] for each in local.call("POST", f"{path}/rewards/batch", {"items": rewards}).json["items"]
            ]
        else:
            answers = [local.call("POST", f"{path}/rewards", reward).json for reward in rewards]
        wanted = [bits(float(value)) for value in values]
        assert [bits(answer["value"]) for answer in answers] == wanted
        rows = [json.loads(line) for line in local.call("GET", f"{path}/log?learned=true").body.splitlines()]
        assert [bits(row["reward"]) for row in rows] == wanted
        shown = local.call("GET", f"{path}/decisions/0").json
        assert bits(shown["reward"]["value"]) == wanted[0]
        for i, value in enumerate(values):
            decision = direct.decide(arm="ab"[i % 2])
            direct.reward(decision, float(value))
        learned: LiveExperiment = local.engine.experiments["p"]
        assert estimates(learned.bandit) == estimates(direct)
        assert learned.bandit.select() == direct.select()
    finally:
        local.call("DELETE", path)


def estimates(bandit):
    return [
        {name: value.hex() if isinstance(value, float) else value for name, value in row.items()}
        for row in bandit.estimates()
    ]


@pytest.mark.parametrize(
    "text",
    ["0.1", "1e-1", "0.10000000000000000555", "100000000000000000000e-21", "0.1000000000000000055511151231257827"],
)
def test_all_ways_to_write_a_number(local, text):
    path = P.format("q")
    local.call("PUT", path, {"arms": ["a"]})
    id = local.call("POST", f"{path}/decisions").json["id"]
    answer = local.call("POST", f"{path}/rewards", b'{"id": "%b", "value": %b}' % (id.encode(), text.encode()))
    assert answer.json["value"] == 0.1
    assert b'"value":0.1,' in answer.body  # the shortest text that gives the same bits


@settings(max_examples=amount(50, 2_000), deadline=None, derandomize=True, database=None)
@given(time=st.floats(0.0, 4e9))
def test_times_keep_their_bits(local, time):
    """Windows are computed from times, so they are exact as well."""
    experiment = local.engine.experiments.get("t")
    if experiment is None:
        local.call("PUT", P.format("t"), {"arms": ["a"]})
        experiment = local.engine.experiments["t"]
    clock, experiment._clock = experiment._clock, lambda: experiment.time + time / 1e6
    try:
        answer = local.call("POST", P.format("t/decisions"))
        stored = local.engine.reader.find(experiment.number, "decided", answer.json["id"])
        assert bits(stored.time) == bits(answer.json["time"]) == bits(experiment.time)
    finally:
        experiment._clock = clock
