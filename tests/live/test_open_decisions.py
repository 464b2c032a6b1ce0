"""Open decisions against a plain dict, and damaged saved forms."""

import math
import sys

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from helpers.amount import amount
from helpers.cases import cases
from robandit.live import open_decisions
from robandit.live.open_decisions import OpenDecisions, SavedDecisions

ARMS = 5
ids = st.one_of(
    st.builds("{}-{}".format, st.sampled_from(["k3x9", "0", "3m9qd2x7wfab"]), st.integers(0, 30)), st.integers(0, 20)
)
contents = st.tuples(
    st.integers(0, ARMS - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.one_of(st.none(), st.floats(0.0, 1.0), st.just(math.nan)),
    st.floats(-1e12, 1e12),
)


def through_bytes(decisions, arms=ARMS):
    data = msgspec.msgpack.encode(decisions.pack())
    return OpenDecisions.unpack(msgspec.msgpack.decode(data, type=SavedDecisions), arms)


def filled(entries):
    decisions = OpenDecisions()
    for id, content in entries.items():
        decisions.add(id, *content)
    return decisions


class AgainstADict(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.model = {}
        self.decisions = OpenDecisions()

    @rule(id=ids, content=contents)
    def add(self, id, content):
        if id in self.model:
            with pytest.raises(ValueError, match="open already"):
                self.decisions.add(id, *content)
        else:
            self.decisions.add(id, *content)
            self.model[id] = content

    @rule(id=ids)
    def close(self, id):
        if id in self.model:
            assert repr(self.decisions.facts(id)[:2]) == repr(self.model.pop(id)[:2])
            self.decisions.close(id)
        else:
            for method in (self.decisions.close, self.decisions.__getitem__):
                with pytest.raises(KeyError):
                    method(id)

    @rule(count=st.integers(0, 10), reverse=st.booleans())
    def close_many(self, count, reverse):
        for id in list(reversed(self.model) if reverse else self.model)[:count]:
            self.close(id)

    @rule(time=st.one_of(st.floats(), st.just(0.0)))
    def older_than(self, time):
        assert self.decisions.older_than(time) == [id for id, content in self.model.items() if content[3] < time]

    @rule()
    def save_and_load(self):
        loaded = through_bytes(self.decisions)
        assert loaded.pack() == self.decisions.pack()
        self.decisions = loaded

    @invariant()
    def same_content(self):
        assert list(self.decisions) == list(self.model)
        assert len(self.decisions) == len(self.model)
        assert repr([(id, tuple(d)) for id, d in self.decisions.items()]) == repr(list(self.model.items()))
        for id, content in self.model.items():
            assert repr(self.decisions[id]) == repr(open_decisions.OpenDecision(*content))
            assert self.decisions.facts(id)[::2] == (content[0], content[3])
        assert all((id in self.decisions) == (id in self.model) for id in ("k3x9-0", 0, "no"))
        assert self.decisions.facts("no") is None

    @invariant()
    def same_bytes_as_new(self):
        assert self.decisions.pack() == filled(self.model).pack()


@pytest.fixture(autouse=True)
def _few_unused_rows(monkeypatch):
    monkeypatch.setattr(open_decisions, "_UNUSED_BYTES", 2 * open_decisions._ROW_BYTES)
    monkeypatch.setattr(open_decisions, "_NEW", 3)


TestAgainstADict = AgainstADict.TestCase
TestAgainstADict.settings = settings(max_examples=amount(40, 100), stateful_step_count=40, deadline=None)


def test_memory_stays_bounded_however_many_decisions_were_made():
    decisions = OpenDecisions()
    decisions.add("stays-0", 0, 1.0, None, 0.0)
    for i in range(10_000):
        decisions.add(f"goes-{i}", 1, 1.0, None, 0.0)
        decisions.close(f"goes-{i}")
    assert sys.getsizeof(decisions._table) < 500
    assert sys.getsizeof(decisions._offsets) < 1000
    assert decisions["stays-0"].arm == 0


def test_equal_values_of_a_column_are_saved_once():
    entries = {f"x-{i}": (i % 3, 1.0, None, float(i)) for i in range(100)}
    saved = filled(entries).pack()
    columns = (saved.arms, saved.marks, saved.propensities, saved.times, saved.places, saved.numbers)
    assert [len(column) for column in columns] == [400, 8, 8, 800, 4, 800]
    mixed = filled(entries | {"x-5": (0, 1.0, math.nan, 5.0)}).pack()
    assert len(mixed.propensities) == 800


def test_zeros_keep_their_signs():
    loaded = through_bytes(filled({"x-0": (0, 0.0, 0.5, 1.0), "x-1": (0, -0.0, 0.5, 1.0)}))
    assert [math.copysign(1.0, decision.mark) for _, decision in loaded.items()] == [1.0, -1.0]


@given(st.dictionaries(ids, contents, max_size=5))
def test_the_number_of_arms_is_checked(entries):
    needed = max([content[0] + 1 for content in entries.values()], default=0)
    assert (through_bytes(filled(entries), needed - 1) is None) == (needed > 0)
    assert through_bytes(filled(entries), needed) is not None


ENTRIES = {"x-0": (0, 1.0, None, 1.0), "x-1": (1, 2.0, 0.5, 2.0), 7: (2, 3.0, math.nan, 3.0)}


def numbers(*values):
    return b"".join(value.to_bytes(8, "little", signed=True) for value in values)


DAMAGE = {
    "a row less": {"numbers": numbers(0, 1)},
    "a row more": {"numbers": numbers(0, 1, 7, 8)},
    "no ids": {"numbers": b""},
    "an id twice": {"numbers": numbers(0, 0, 7)},
    "a number cut off": {"numbers": numbers(0, 1, 7)[:-1]},
    "a negative number": {"numbers": numbers(0, -1, 7)},
    "a long number": {"numbers": numbers(0, 1, 10**18)},
    "a life less": {"lives": ["x"]},
    "a life twice": {"lives": ["x", "x"]},
    "a long life": {"lives": ["x" * 33, ""]},
    "a space": {"lives": ["x y", ""]},
    "a carriage return": {"lives": ["x\r", ""]},
    "other digits": {"lives": ["\u0667", ""]},
    "a hyphen": {"lives": ["x-", ""]},
    "a place that no life has": {"places": (2).to_bytes(4, "little")},
    "a negative arm": {"arms": b"\0\0\0\0" + b"\xff" * 4 + b"\0\0\0\0"},
    "a large arm": {"arms": b"\x05\0\0\0"},
    "a byte less": {"marks": bytes(23)},
    "no marks": {"marks": b""},
    "two marks": {"marks": bytes(16)},
    "two probabilities": {"propensities": bytes(16)},
    "a probability above 1": {"propensities": open_decisions.struct.pack("<d", 1.5)},
    "a negative probability": {"propensities": open_decisions.struct.pack("<d", -0.5)},
    "an infinite time": {"times": open_decisions.struct.pack("<d", math.inf)},
    "no number as time": {"times": open_decisions.struct.pack("<ddd", 1.0, math.nan, 2.0)},
}


@cases("damage", DAMAGE.values())
def test_damaged_data_are_rejected(damage):
    saved = filled(ENTRIES).pack()
    assert repr(through_bytes(filled(ENTRIES)).pack()) == repr(saved)
    damaged = SavedDecisions(**({name: getattr(saved, name) for name in saved.__struct_fields__} | damage))
    assert OpenDecisions.unpack(damaged, ARMS) is None


def test_a_decision_that_cannot_be_stored_changes_nothing():
    decisions = filled(ENTRIES)
    before = decisions.pack()
    with pytest.raises(open_decisions.struct.error):
        decisions.add("x-9", "a", 1.0, None, 1.0)
    assert decisions.pack() == before
    assert "x-9" not in decisions
