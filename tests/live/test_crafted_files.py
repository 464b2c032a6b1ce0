"""Saved bandits that somebody made by hand, with valid checksums: each loads and plays, or is refused by name."""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.amount import LONG, amount
from helpers.crafting import POLICIES, run_in_child
from helpers.fuzzing import MORE
from helpers.live_bandits import lived as compiled_lived
from robandit.errors import BrokenState, CorruptFile
from robandit.live.saving import HEADER
from robandit.policies import Policy, all_policies
from robandit.policies.adakl import clipped_index
from robandit.policies.adar import layout

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
    """``FUZZ=180`` plays 20,000 files. Each fourth one is played by plain Python."""
    cases = [f"{number}:{seed}" for number in range(part, len(POLICIES), PARTS) for seed in seeds(number)]
    results = run_in_child(tmp_path, cases)
    assert [result["case"] for result in results] == cases
    failed = [result for result in results if result["outcome"].startswith("FAILED")]
    assert not failed, "\n".join(f"{POLICIES[int(r['case'].split(':')[0])]!r}: {r}" for r in failed[:5])
    outcomes = {result["outcome"] for result in results}
    assert (
        {"played", "CorruptFile"} <= outcomes <= {"played", "CorruptFile", "InvalidInput", "BrokenState", "KernelError"}
    )


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


@pytest.mark.parametrize("how", ["never", "now"])
def test_a_full_row_of_zeros_is_not_thinned_for_ever(how, tmp_path):
    """AdaKL-UCB raises a cut until its buffer has room; 0 stays 0 however often it is raised."""
    rooms = 1024

    def change(content):
        arrays = {
            name: np.frombuffer(data, kind).reshape(shape).copy()
            for name, (kind, shape, data) in content["state"].items()
        }
        arrays["buffer"] = np.zeros((2, rooms + 1))
        arrays["counts"][0, [clipped_index.KEPT, clipped_index.BIG]] = rooms
        arrays["counts"][0, clipped_index.N_NONZERO] = 0
        arrays["arms"][0, clipped_index.CUT] = 0.0
        arrays["clock"][layout.LIMIT] = 0
        content["state"] = {name: [a.dtype.str, list(a.shape), a.tobytes()] for name, a in arrays.items()}

    bandit = rb.Bandit(["a", "b"], rb.AdaKLUCB(), compile="never")
    bandit.update_many(["a"] * 150 + ["b"] * 150, np.random.default_rng(0).normal(size=300))
    case = tmp_path / f"zeros.{how}"
    case.write_bytes(changed(bandit, change))
    (result,) = run_in_child(tmp_path, [str(case)])
    assert result["outcome"] in ("played", "BrokenState"), result


def refused(data, words):
    with pytest.raises(CorruptFile, match=words):
        rb.Bandit.from_bytes(data, compile="never")


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_that_make_no_sense(compiled, tmp_path):
    """They would become invalid indices, would let a loop never end, or would ask for terabytes."""
    numbers = [
        (rb.UCB1(), "lead", 0, 3),
        (rb.UCB1(), "lead", 1, -(2**40)),
        (rb.UCB1(), "pulls", 4, 2),  # an arm without rewards is counted as tried
        (rb.AdaRUCB(), "counts", (0, 2), 2**40),
        (rb.AdaKLUCB(), "counts", (2, 3), 257),
        (rb.AdaKLUCB(), "clock", 6, 514),
        (rb.GaussianTS(), "arms", (slice(None), 0), -1e300),  # a loop that adds 1 to it
        (rb.GaussianTS(), "arms", (slice(None), 0), np.inf),
        (rb.LBSDA(), "slots", (0, 0), 10**6),
        (rb.LBSDA(), "slots", (slice(None), 2), 2**45),
        (rb.MARS(), "pulls", -2, 2**50),
        (rb.MARS(), "spans", (slice(None), 1), 2**45),
        (rb.RobustMOSS(eps=0.5, u=1.0, horizon=500), "arms", (slice(None), 1), np.inf),
        (rb.RUCBTEA(), "reach", slice(None), np.inf),
        (rb.Ada2TINF(), "root", 4, 1e308),  # the probability of a choice would be NaN
        (rb.Probing(rb.UCB1()), "drift_book", 2, 9.0),
        (rb.Probing(rb.UCB1()), "drift_book", slice(None), np.nan),
    ]
    if not compiled:
        numbers.append((rb.AdaRUCB(solver="doubling"), "arms", (0, 13), 0.0))  # doubled for ever
    cases = []
    for k, (policy, name, place, number) in enumerate(numbers):
        cases.append(str(tmp_path / f"{k}.{'now' if compiled else 'never'}"))
        Path(cases[-1]).write_bytes(with_number(lived(policy), name, place, number))
    results = run_in_child(tmp_path, cases)
    assert [result["case"] for result in results] == cases
    failed = [(numbers[cases.index(r["case"])], r) for r in results if r["outcome"].startswith("FAILED")]
    assert not failed, failed[0]
    assert {"played", "BrokenState"} <= {result["outcome"] for result in results}


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
    """A policy of a user, with an index in its state."""

    def init(self, arms, horizon):
        return OwnState(np.zeros(3, dtype=np.int64))

    @staticmethod
    def select(p, s):
        return s.best[s.best[0]]

    @staticmethod
    def update(p, s, arm, reward):
        s.best[1] = arm


@pytest.mark.parametrize("compile", ["now", "never"])
def test_policies_of_users_are_protected(compile):
    data = with_number(lived(Own()), "best", 0, 10**12)
    bandit = rb.Bandit.from_bytes(data, compile=compile)
    with pytest.raises(BrokenState, match=r"Own\(\) raised IndexError.* The state or the policy is broken"):
        bandit.select()


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_many_clipped_rewards_between_two_evaluations():
    """AdaKL-UCB kept counting rewards beyond the threshold, and read behind the end of its sums of squares."""
    rng = np.random.default_rng(0)
    often, rarely = (rb.Bandit(["a", "b"], rb.AdaKLUCB(), compile="never") for _ in range(2))
    values = [*rng.normal(size=300), *rng.standard_cauchy(150)]
    for bandit in (often, rarely):
        bandit.update_many(["a"] * 300 + ["b"] * 150, values)
        bandit.select()
    for step in range(120):
        for bandit in (often, rarely):
            bandit.update("b", 1e6 * 1.2**step * (-1) ** step)
        often.select()
    for one, other in zip(often.estimates(), rarely.estimates(), strict=True):
        assert one["index"] == pytest.approx(other["index"], rel=1e-9)
        assert one["mean"] == pytest.approx(other["mean"], rel=1e-9)
