"""Saved bandits: bytes, files, copies, pickles, golden files, and damaged or forged content."""

import copy
import enum
import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.live_bandits import QUICK, lived, next_decisions
from helpers.own_policies import Exp3, Greedy
from robandit.errors import CorruptFile, DecisionError, FileError, InvalidInput, NewerFile
from robandit.live import saving
from robandit.live.saving import HEADER, MAGIC

GOLDEN = Path(__file__).parents[1] / "golden"


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [rb.AdaRUCB(), QUICK, rb.UCB1(scale=0.5), Greedy(), Exp3()], ids=repr)
@pytest.mark.parametrize("pulls", [0, 1, 400])
def test_a_loaded_bandit_goes_on(policy, pulls, tmp_path):
    bandit = lived(policy, pulls)
    decisions = [bandit.decide() for _ in range(4)]
    bandit.expire(decisions[1])
    bandit.select()
    bandit.save(tmp_path / "b")
    copy = rb.Bandit.load(str(tmp_path / "b"))
    assert (copy.policy, copy.arms, copy.open, copy.counters()) == (policy, bandit.arms, bandit.open, bandit.counters())
    assert repr(copy.estimates()) == repr(bandit.estimates())
    assert copy.select() == bandit.select()
    for each in (bandit, copy):
        each.reward(decisions[2], -3.0)
        with raises(DecisionError, parameter="decision", rule="an open decision"):
            each.reward(decisions[1].id, -3.0)
        with raises(DecisionError, parameter="decision", rule="an open decision"):
            each.reward(decisions[2].id, -3.0)
    assert copy.to_bytes() == bandit.to_bytes()
    assert copy.decide()[1:3] == bandit.decide()[1:3]
    assert next_decisions(copy, 150) == next_decisions(bandit, 150)
    assert repr(copy.estimates()) == repr(bandit.estimates())


class Place(enum.StrEnum):
    HERE = "here"


def test_arms_of_every_kind_survive(tmp_path):
    arms = [
        "text",
        "",
        "Ünïcode ✓",
        3,
        -(2**63),
        2**64 - 1,
        2.5,
        -1e300,
        None,
        True,
        ("nested", (1, None, ("deep", 0.5)), ()),
        np.int32(7),
        np.float64(0.25),
        np.str_("numpy"),
        (np.int64(1), np.float32(0.5)),
        ["a", "list"],
        Place.HERE,
    ]
    bandit = rb.Bandit(arms, rb.UCB1())
    plain = [*arms[:11], 7, 0.25, "numpy", (1, 0.5), ("a", "list"), "here"]
    assert list(bandit.arms) == plain
    assert all(not isinstance(arm, np.generic) for arm in bandit.arms)
    for i, arm in enumerate(plain):
        bandit.update(arm, float(i))
    bandit.update(np.int64(3), 1.0)
    bandit.update(np.str_("text"), 1.0)
    bandit.save(tmp_path / "b")
    copy = rb.Bandit.load(tmp_path / "b")
    assert list(copy.arms) == plain
    assert [type(arm) for arm in copy.arms[:-1]] == [type(arm) for arm in bandit.arms[:-1]]
    assert next_decisions(copy) == next_decisions(bandit)


@pytest.mark.parametrize("name", ["adakl_ucb.format1.bandit", "adakl_ucb.format2.bandit"])
def test_a_file_whose_policy_is_gone_is_refused_by_name(name):
    words = r"AdaKLUCB\(schedule='practical'\) is gone since Robandit 0\.3: Robandit 0\.2\.0 still reads and plays it"
    with pytest.raises(InvalidInput, match=words):
        rb.Bandit.load(GOLDEN / name)


@cases(
    "name", [name for name in sorted(json.loads((GOLDEN / "expected.json").read_text())) if "adakl_ucb." not in name]
)
def test_files_of_every_format_still_load(name):
    expected = json.loads((GOLDEN / "expected.json").read_text())[name]
    bandit = rb.Bandit.load(GOLDEN / name)
    assert bandit.policy == rb.Policy.from_dict(expected["policy"])
    assert bandit.arms[:3] == ("eu", 7, ("us", None, 0.5))
    assert list(bandit.states.values()) == expected.get("states", ["active"] * 3)
    assert bandit.minimize == bool(bandit.diagnose().changes) == ("production" in name)
    assert [[d.id, bandit.arms.index(d.arm)] for d in bandit.open] == [expected["open"]]
    for reward, arm in zip(expected["told"], expected["chosen"], strict=True):
        assert bandit.arms.index(bandit.select()) == arm
        bandit.update(bandit.select(), reward - arm)
    rows = bandit.estimates()
    assert [row["pulls"] for row in rows] == expected["pulls"]
    for row, numbers in zip(rows, expected["estimates"], strict=True):
        said = [row[column] for column in bandit.policy.columns]
        np.testing.assert_allclose(said, [float(number) for number in numbers], rtol=1e-12)


def test_there_is_a_golden_file_of_todays_format():
    names = os.listdir(GOLDEN)
    for kind in ("ucb1", "adar_ucb", "adakl_ucb", "adakl_ucb_adaptive"):
        assert f"{kind}.format{saving.FORMAT_VERSION}.bandit" in names
    assert set(json.loads((GOLDEN / "expected.json").read_text())) == {n for n in names if n.endswith(".bandit")}


def test_damaged_files_are_rejected_by_name(tmp_path):
    good = lived(rb.UCB1()).to_bytes()
    path = tmp_path / "bad"
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(CorruptFile, match="bad"):
            rb.Bandit.load(path)
    for place in range(len(good)):
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        in_version = 8 <= place < 12
        with pytest.raises((CorruptFile, NewerFile) if in_version else CorruptFile, match="bad"):
            rb.Bandit.load(path)
    for other in (b"PK\x03\x04" * 50, good + b"\0", good[:8] + bytes(4) + good[12:]):
        path.write_bytes(other)
        with pytest.raises(CorruptFile):
            rb.Bandit.load(path)


def test_a_newer_file_is_rejected_by_name(tmp_path, monkeypatch):
    bandit = lived(rb.UCB1())
    monkeypatch.setattr(saving, "FORMAT_VERSION", 7)
    bandit.save(tmp_path / "b")
    monkeypatch.undo()
    with pytest.raises(NewerFile, match=r"b has format 7; this Robandit reads up to 2: upgrade"):
        rb.Bandit.load(tmp_path / "b")


def test_files_that_cannot_be_read_or_written(tmp_path):
    bandit = lived(rb.UCB1())
    with pytest.raises(FileError, match="No such file or directory; check the path"):
        rb.Bandit.load(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be read"):
        rb.Bandit.load(tmp_path)
    with pytest.raises(FileError, match="No such file"):
        bandit.save(tmp_path / "no folder" / "b")
    with pytest.raises(FileError, match="not a file"):
        bandit.save(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_and_the_bandit(tmp_path, monkeypatch):
    bandit = lived(QUICK)
    bandit.save(tmp_path / "b")
    before = (tmp_path / "b").read_bytes()
    bandit.update("us", -1.0)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(FileError, match=r"b cannot be written: No space left.*unchanged"):
            bandit.save(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == before
    assert os.listdir(tmp_path) == ["b"]
    bandit.save(tmp_path / "b")
    assert next_decisions(rb.Bandit.load(tmp_path / "b")) == next_decisions(bandit)


def test_a_policy_that_is_not_imported(tmp_path, monkeypatch):
    lived(Greedy()).save(tmp_path / "b")
    monkeypatch.delitem(sys.modules["robandit.policies.base"]._registry, Greedy.tag())
    with pytest.raises(InvalidInput, match=r"own_policies:Greedy.*Import its module first"):
        rb.Bandit.load(tmp_path / "b")


def test_a_state_of_another_version_of_a_policy(tmp_path, monkeypatch):
    lived(Greedy()).save(tmp_path / "b")

    def other(self, arms, horizon):
        return rb.AdaRUCB().init(arms, horizon)

    monkeypatch.setattr(Greedy, "init", other)
    with pytest.raises(CorruptFile, match="another version of the policy"):
        rb.Bandit.load(tmp_path / "b")


# --- bytes, copies and forged content -------------------------------------------------------------------------------


def of_three_kinds():
    """Return a bandit whose arms have names of three kinds, with an open decision."""
    bandit = rb.Bandit(["a", ("b", 1), 3], rb.AdaRUCB(), seed=0)
    for j in range(400):
        bandit.update(bandit.select(), -1.0 - (j * 7919 % 13))
    bandit.decide()
    return bandit


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_is_independent(duplicate):
    bandit = of_three_kinds()
    other = duplicate(bandit)
    assert other.open == bandit.open
    before = repr(bandit.estimates())
    for _ in range(50):
        assert other.select() in bandit.arms
        other.update(other.select(), -50.0)
    other.reward(other.open[0], -1.0)
    assert repr(bandit.estimates()) == before
    assert len(bandit.open) == 1


def test_bytes_are_what_a_file_has_and_are_read_back(tmp_path):
    bandit = of_three_kinds()
    bandit.save(tmp_path / "bandit")
    saved = bandit.to_bytes()
    assert saved == (tmp_path / "bandit").read_bytes()
    for form in (bytes, bytearray, memoryview):
        again = rb.Bandit.from_bytes(form(saved))
        assert again.to_bytes() == saved
        assert (again.select(), again.open) == (bandit.select(), bandit.open)


class Named(rb.Bandit):
    """A subclass."""


@pytest.mark.parametrize("duplicate", [copy.copy, lambda b: Named.from_bytes(b.to_bytes())])
def test_a_subclass_stays_one(duplicate):
    assert type(duplicate(Named(["a", "b"], rb.UCB1()))) is Named


@pytest.mark.parametrize("data", [None, 3, "robandit", ["robandit"]], ids=repr)
def test_what_is_not_bytes_is_rejected(data):
    with raises(InvalidInput, parameter="data", rule="bytes that to_bytes() returned") as caught:
        rb.Bandit.from_bytes(data)
    assert caught.value.parameter == "data"


@pytest.mark.parametrize("data", [b"", b"robandit", b"x" * 100])
def test_other_bytes_are_rejected(data):
    with pytest.raises(CorruptFile, match="data is not a bandit that Robandit saved"):
        rb.Bandit.from_bytes(data)


def test_a_damaged_byte_is_found():
    data = bytearray(of_three_kinds().to_bytes())
    data[-1] ^= 1
    with pytest.raises(CorruptFile, match="data is damaged: its checksum does not match"):
        rb.Bandit.from_bytes(data)


def test_a_pickle_is_read_by_a_new_process(tmp_path):
    bandit = of_three_kinds()
    (tmp_path / "bandit.pickle").write_bytes(pickle.dumps(bandit))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).select())"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "bandit.pickle"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(bandit.select())


def forged(path, change):
    """Write a saved file with changed content and the right checksum."""
    saved = of_three_kinds().to_bytes()
    data = msgspec.msgpack.decode(saved[HEADER:])
    change(data)
    payload = msgspec.msgpack.encode(data)
    path.write_bytes(saved[: len(MAGIC) + 4] + hashlib.sha256(payload).digest() + payload)
    return path


def smaller(data):
    kind, shape, content = data["state"]["counts"]
    data["state"]["counts"] = [kind, [shape[0], shape[1] - 1], content[: 8 * shape[0] * (shape[1] - 1)]]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("open"),
        lambda d: d.update(open=[[0, 50, 1.0]]),
        lambda d: d["open"].__setitem__(0, ["unknown"]),
        lambda d: d["open"].__setitem__(6, (99).to_bytes(8, "little")),
        lambda d: d["open"].__setitem__(1, (50).to_bytes(4, "little")),
        lambda d: d["open"].__setitem__(2, b"1234"),
        lambda d: d.update(issued={}),
        lambda d: d.update(issued={"k3m9": -1} | d["issued"]),
        lambda d: d.update(states=["active"]),
        lambda d: d.update(states=["active", "asleep", "active"]),
        lambda d: d.update(minimize="yes"),
        lambda d: d.update(max_open=0),
        lambda d: d.update(asked=[[3]]),
        lambda d: d.update(among=[]),
        lambda d: d.update(received=[1]),
        lambda d: d.update(pick=7),
        lambda d: d.update(expired="many"),
        lambda d: d["state"].pop("counts"),
        lambda d: d["state"].update(counts=["<i8", [1000, 1000], b""]),
        lambda d: d["state"].update(counts=["nonsense", [1], b"12345678"]),
        smaller,
    ],
)
def test_inconsistent_content_is_rejected(change, tmp_path):
    with pytest.raises(CorruptFile):
        rb.Bandit.load(forged(tmp_path / "bandit", change))


def test_unchanged_content_loads(tmp_path):
    again = rb.Bandit.load(forged(tmp_path / "bandit", lambda d: None))
    assert [decision.arm for decision in again.open] == [decision.arm for decision in of_three_kinds().open]
