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
from robandit.live.bandit import MAGIC


def lived():
    bandit = rb.Bandit(["a", ("b", 1), 3], rb.AdaRUCB(), seed=0)
    for j in range(400):
        bandit.update(bandit.select(), -1.0 - (j * 7919 % 13))
    bandit.decide()
    return bandit


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_goes_on_by_itself(duplicate):
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


def test_a_pickle_is_read_by_a_new_process(tmp_path):
    bandit = lived()
    (tmp_path / "bandit.pickle").write_bytes(pickle.dumps(bandit))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).select())"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "bandit.pickle"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(bandit.select())


def forged(path, change):
    """A saved file with other content and a checksum that fits it."""
    bandit = lived()
    bandit.save(path)
    head = len(MAGIC) + 4
    data = msgspec.msgpack.decode(path.read_bytes()[head + 32 :])
    change(data)
    payload = msgspec.msgpack.encode(data)
    path.write_bytes(path.read_bytes()[:head] + hashlib.sha256(payload).digest() + payload)
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
def test_content_that_does_not_fit_together_is_refused(change, tmp_path):
    with pytest.raises(CorruptFile):
        rb.Bandit.load(forged(tmp_path / "bandit", change))


def test_an_unchanged_forgery_loads(tmp_path):
    assert rb.Bandit.load(forged(tmp_path / "bandit", lambda d: None)).open == lived().open


def test_a_decision_of_another_bandit_is_refused():
    one, other = (rb.Bandit([name, "z"], rb.UCB1()) for name in ("a", "b"))
    foreign = other.decide()
    one.decide()
    with pytest.raises(DecisionError, match="is not a decision of this bandit"):
        one.reward(foreign, 1.0)
    assert len(one.open) == 1


@pytest.mark.parametrize(
    ("arms", "rewards", "says"), [("ab", [1.0, 2.0], "arms = 'ab'"), (["a"], 1.0, "rewards = 1.0")]
)
def test_bulk_that_is_no_list(arms, rewards, says):
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    with pytest.raises(InvalidInput, match=f"{says} must be a list"):
        bandit.update_many(arms, rewards)
