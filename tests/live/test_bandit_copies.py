"""Copies, pickles, and files that were made by hand."""

import copy
import hashlib
import pickle
import subprocess
import sys

import msgspec
import pytest

import robandit as rb
from robandit.errors import CorruptFile, DecisionError, InvalidInput
from robandit.live.saving import HEADER, MAGIC


def lived():
    bandit = rb.Bandit(["a", ("b", 1), 3], rb.AdaRUCB(), seed=0)
    for j in range(400):
        bandit.update(bandit.select(), -1.0 - (j * 7919 % 13))
    bandit.decide()
    return bandit


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_is_independent(duplicate):
    bandit = lived()
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
    bandit = lived()
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
    with pytest.raises(InvalidInput, match=r"data = .* must be bytes that to_bytes\(\) returned") as caught:
        rb.Bandit.from_bytes(data)
    assert caught.value.parameter == "data"


@pytest.mark.parametrize("data", [b"", b"robandit", b"x" * 100])
def test_other_bytes_are_rejected(data):
    with pytest.raises(CorruptFile, match="data is not a bandit that Robandit saved"):
        rb.Bandit.from_bytes(data)


def test_a_damaged_byte_is_found():
    data = bytearray(lived().to_bytes())
    data[-1] ^= 1
    with pytest.raises(CorruptFile, match="data is damaged: its checksum does not match"):
        rb.Bandit.from_bytes(data)


def test_a_pickle_is_read_by_a_new_process(tmp_path):
    bandit = lived()
    (tmp_path / "bandit.pickle").write_bytes(pickle.dumps(bandit))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).select())"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "bandit.pickle"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(bandit.select())


def forged(path, change):
    """Write a saved file with changed content and the right checksum."""
    saved = lived().to_bytes()
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
        lambda d: d.update(open=[[99, 0, 1.0]]),
        lambda d: d.update(received=[1]),
        lambda d: d.update(pick=7),
        lambda d: d.update(next="many"),
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
    assert rb.Bandit.load(forged(tmp_path / "bandit", lambda d: None)).open == lived().open


def test_a_decision_of_another_bandit_is_rejected():
    one, other = (rb.Bandit([name, "z"], rb.UCB1()) for name in ("a", "b"))
    foreign = other.decide()
    one.decide()
    with pytest.raises(DecisionError, match="is not a decision of this bandit"):
        one.reward(foreign, 1.0)
    assert len(one.open) == 1


@pytest.mark.parametrize(
    ("arms", "rewards", "says"), [("ab", [1.0, 2.0], "arms = 'ab'"), (["a"], 1.0, "rewards = 1.0")]
)
def test_bulk_that_is_not_a_list(arms, rewards, says):
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    with pytest.raises(InvalidInput, match=f"{says} must be a list"):
        bandit.update_many(arms, rewards)
