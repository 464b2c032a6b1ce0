"""Saved bandits that somebody made by hand, with valid checksums: each loads and plays, or is refused by name."""

import hashlib
import os
import re
import warnings
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.amount import LONG, amount
from helpers.crafting import POLICIES, run_in_child, strictly
from helpers.fuzzing import MORE
from helpers.live_bandits import lived as compiled_lived
from robandit.errors import CorruptFile
from robandit.kernel.ranges import Range
from robandit.live.saving import HEADER
from robandit.policies import Policy, all_policies
from robandit.policies.index import IndexPolicy

lived = partial(compiled_lived, compile="never")
PARTS = 2  # so that several test processes share the work
CASES = amount(2, 40) * MORE
FIRST = 0 if MORE == 1 else int.from_bytes(os.urandom(4), "big")


def seeds(number):
    """Those of plain Python for variants of policies in a usual run: compiling the variants would take most of its time."""
    usual = MORE == 1 and not LONG
    return range(0, 4 * CASES, 4) if usual and number >= len(all_policies()) else range(FIRST, FIRST + CASES)


@pytest.mark.parametrize("part", range(PARTS))
def test_crafted_files_of_every_policy(part, tmp_path):
    """``FUZZ=180`` plays 20,000 files. Each fourth one is played by plain Python, which checks indices."""
    cases = [f"{number}:{seed}" for number in range(part, len(POLICIES), PARTS) for seed in seeds(number)]
    results = run_in_child(tmp_path, cases)
    assert [result["case"] for result in results] == cases
    failed = [result for result in results if result["outcome"].startswith("FAILED")]
    assert not failed, "\n".join(f"{POLICIES[int(r['case'].split(':')[0])]!r}: {r}" for r in failed[:5])
    outcomes = {result["outcome"] for result in results}
    assert {"played", "CorruptFile"} <= outcomes <= {"played", "CorruptFile", "InvalidInput"}


def with_payload(data, payload):
    return data[: HEADER - 32] + hashlib.sha256(payload).digest() + payload


def changed(bandit, change):
    """Return the bytes of the bandit, with its content changed."""
    data = bandit.to_bytes()
    content = msgspec.msgpack.decode(data[HEADER:])
    change(content)
    return with_payload(data, msgspec.msgpack.encode(content))


def with_number(bandit, name, place, number):
    def change(content):
        kind, shape, data = content["state"][name]
        array = np.frombuffer(data, dtype=kind).reshape(shape).copy()
        array[place] = number
        content["state"][name][2] = array.tobytes()

    return changed(bandit, change)


def refused(data, words):
    with pytest.raises(CorruptFile, match=words):
        rb.Bandit.from_bytes(data, compile="never")


@pytest.mark.parametrize(
    ("policy", "name", "place", "number"),
    [
        (rb.UCB1(), "lead", 0, 3),
        (rb.UCB1(), "lead", 1, -2),
        (rb.UCB1(), "pulls", 4, 2),  # an arm without rewards would be counted as tried
        (rb.UCB1(), "arms", (1, 1), 2.5),
        (rb.AdaRUCB(), "counts", (0, 2), 2**40),
        (rb.AdaRUCB(solver="doubling"), "arms", (0, 13), 0.0),  # doubled for ever
        (rb.AdaKLUCB(), "counts", (2, 3), 257),
        (rb.AdaKLUCB(), "clock", 6, 514),
        (rb.GaussianTS(), "arms", (0, 0), -1e300),  # a loop that adds 1 to it
        (rb.LBSDA(), "slots", (0, 0), 10**6),
        (rb.Ada2TINF(), "root", 4, 1e308),  # the probability of a choice would be NaN
        (rb.Probing(rb.UCB1()), "drift_book", 2, 9.0),
    ],
)
def test_a_number_that_would_become_an_invalid_index_is_named(policy, name, place, number):
    refused(
        with_number(lived(policy), name, place, number),
        rf"in the state of .*{name}\[.*\] = {re.escape(repr(number))} is not",
    )


@pytest.mark.parametrize("policy", [rb.AdaKLUCB(), rb.AdaKLProved()], ids=repr)
@pytest.mark.parametrize(("column", "number"), [(0, 1e9), (16, -1.0), (17, 1e150), (18, 0.0), (18, -3.0)])
def test_a_cluster_that_cannot_be_is_refused(policy, column, number):
    """AdaKL-UCB sums rewards far from the first ones about a pivot. (Without a cluster, nothing reads its numbers.)"""
    bandit = rb.Bandit(["eu", "us"], policy, seed=0)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(action="ignore"):
        bandit.update_many(["eu"] * 3200, [*rng.normal(size=200), *rng.normal(100.0, 5.0, 3000)])
        bandit.update(bandit.select(), 1.0)
    assert bandit._engine.state.far[0, 0, 16] > 256.0
    refused(with_number(bandit, "far", (0, 0, column), number), rf"in the state of {policy.label}, far\[0, 0, ")


def test_a_leader_that_is_not_allowed_is_refused():
    bandit = lived(rb.UCB1())
    bandit.pause_arm("us")
    refused(with_number(bandit, "lead", 0, 1), r"lead\[0\] = 1 is not an integer from -1 to -1")


def test_fields_that_grow_together_have_the_same_size():
    """A new arm of MARS would begin behind the end of the shorter one."""

    def longer(content):
        kind, shape, data = content["state"]["sums"]
        content["state"]["sums"] = [kind, [shape[0] + 1, shape[1]], data + data[: 8 * shape[1]]]

    refused(changed(lived(rb.MARS()), longer), r"in the state of MARS, spans\[0, ")


def test_a_field_that_does_not_grow_has_its_first_size():
    def longer(content):
        kind, shape, data = content["state"]["lines"]
        content["state"]["lines"] = [kind, [shape[0] + 1, shape[1]], data + data[: 8 * shape[1]]]

    refused(changed(lived(rb.UCB1()), longer), "another version of the policy")


@pytest.mark.parametrize("text", ["aé", "active", "UCB1", "scale", "lead", "<f8"])
def test_invalid_utf_8(text):
    data = rb.Bandit(["aé", "b"], rb.UCB1(), seed=0, compile="never").to_bytes()
    payload = data[HEADER:].replace(text.encode(), b"\xff" + text.encode()[1:])
    refused(with_payload(data, payload), "utf-8")


def record(content):
    return content["record"]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(pick=1),  # paused
        lambda content: content.update(among=[1]),
        lambda content: content["received"].__setitem__(0, 2**53),
        lambda content: content["open"].__setitem__(2, np.float64(np.nan).tobytes()),
        lambda content: record(content)["fresh"].__setitem__(0, np.float64(np.inf).tobytes()),
        lambda content: record(content)["watch"]["alarms"].append(
            {"arm": 3, "changed": 1, "noticed": 1, "kind": "level up"}
            | {key: {"low": 0.0, "median": 0.0, "high": 0.0, "mean": 0.0} for key in ("before", "after")}
        ),
    ],
)
def test_what_a_bandit_adds_to_its_policy_is_checked(change):
    bandit = lived(rb.UCB1())
    bandit.decide()
    bandit.pause_arm("us")
    refused(changed(bandit, change), "is damaged")


def test_a_mark_that_is_no_probability_is_refused():
    bandit = lived(rb.OptTINF())
    bandit.decide()
    refused(changed(bandit, lambda content: content["open"].__setitem__(2, np.zeros(1).tobytes())), "do not fit")


def test_a_nested_policy_is_refused():
    def nest(content):
        for _ in range(300):
            content["policy"] = {"policy": "Probing", "of": content["policy"]}

    with pytest.raises(rb.errors.RobanditError, match="nested"):
        rb.Bandit.from_bytes(changed(lived(rb.UCB1()), nest), compile="never")


class OwnState(NamedTuple):
    best: Any


class Own(Policy):
    """A policy of a user, who has declared nothing."""

    def init(self, arms, horizon):
        return OwnState(np.zeros(1, dtype=np.int64))

    @staticmethod
    def select(p, s):
        return 0

    @staticmethod
    def update(p, s, arm, reward):
        s.best[0] = arm


class Declared(Own):
    def ranges(self, state):
        return {"best": Range(0, len(state.allowed) - 1)}


class OwnIndex(IndexPolicy):
    row_length = 1

    @staticmethod
    def index(p, s, arm, level):
        return -s.arms[arm, 0]

    @staticmethod
    def add(p, s, arm, reward):
        s.arms[arm, 0] += 1.0


def test_policies_of_users_are_checked_as_far_as_they_declare():
    assert rb.Bandit.from_bytes(with_number(lived(Own()), "best", 0, 99), compile="never")._engine.state.best[0] == 99
    refused(with_number(lived(Declared()), "best", 0, 99), r"best\[0\] = 99 is not an integer from 0 to 2")
    refused(with_number(lived(OwnIndex()), "lead", 0, 99), "lead")


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_many_clipped_rewards_between_two_evaluations():
    """AdaKL-UCB kept counting rewards beyond the threshold, and read behind the end of its sums of squares."""
    rng = np.random.default_rng(0)
    often, rarely = (rb.Bandit(["a", "b"], rb.AdaKLUCB(), compile="never") for _ in range(2))
    values = [*rng.normal(size=300), *rng.standard_cauchy(150)]
    for bandit in (often, rarely):
        bandit.update_many(["a"] * 300 + ["b"] * 150, values)
        bandit.select()
    strictly(rarely)
    for step in range(120):
        for bandit in (often, rarely):
            bandit.update("b", 1e6 * 1.2**step * (-1) ** step)
        often.select()
    for one, other in zip(often.estimates(), rarely.estimates(), strict=True):
        assert one["index"] == pytest.approx(other["index"], rel=1e-9)
        assert one["mean"] == pytest.approx(other["mean"], rel=1e-9)
