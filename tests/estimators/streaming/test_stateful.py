"""Random sequences of updates, merges and saves, beside accumulators that keep everything."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from mpmath import mpf

from references.plain_streams import PlainTrimmedMean
from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators import Catoni, MedianOfMeans, TrimmedMean, catoni_mean, median_of_means

VALUES = st.one_of(
    st.floats(-1e100, 1e100),
    st.floats(-4.0, 4.0),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e140, 0.1]),
    st.integers(-3, 3).map(float),
)
WHICH = st.integers(0, 2)


class Machine(RuleBasedStateMachine):
    """Three shards of each kind."""

    def __init__(self):
        super().__init__()
        self.trimmed = [TrimmedMean(delta_min=0.2) for _ in range(3)]
        self.plain = [PlainTrimmedMean() for _ in range(3)]
        self.median = [MedianOfMeans(delta_min=0.2) for _ in range(3)]
        self.catoni = [Catoni() for _ in range(3)]
        self.kept: list[list[float]] = [[], [], []]

    @rule(j=WHICH, value=VALUES)
    def update(self, j, value):
        for kind in (self.trimmed, self.plain, self.median, self.catoni):
            kind[j].update(value)
        self.kept[j].append(value)

    @rule(j=WHICH, values=st.lists(VALUES, max_size=40), repeat=st.integers(1, 4))
    def update_many(self, j, values, repeat):
        for kind in (self.trimmed, self.plain, self.median, self.catoni):
            kind[j].update_many(values * repeat)
        self.kept[j] += values * repeat

    @rule(j=WHICH, seed=st.integers(0, 5), n=st.integers(50, 300))
    def many_at_random(self, j, seed, n):
        values = np.random.default_rng(seed).standard_t(1.2, n).tolist()
        self.update_many(j, values, 1)

    @rule(j=WHICH, wrong=st.sampled_from([math.nan, math.inf, "x"]))
    def refused(self, j, wrong):
        for kind in (self.trimmed, self.median, self.catoni):
            before = kind[j].to_dict()
            with pytest.raises(InvalidInput):
                kind[j].update_many([1.0, wrong])
            assert kind[j].to_dict() == before

    @rule(a=WHICH, b=WHICH)
    def merge(self, a, b):
        if a == b or len(self.kept[a]) + len(self.kept[b]) > 1500:
            return
        for kind in (self.trimmed, self.median, self.catoni):
            before = kind[b].to_dict()
            kind[a].merge(kind[b])
            assert kind[b].to_dict() == before
        self.plain[a].merge(self.plain[b])
        self.kept[a] = self.kept[a] + self.kept[b]

    @rule(j=WHICH)
    def save_and_load(self, j):
        for kind in (self.trimmed, self.median, self.catoni):
            state = json.loads(json.dumps(kind[j].to_dict(), allow_nan=False))
            kind[j] = type(kind[j]).from_dict(state)
            assert kind[j].to_dict() == state

    @rule(j=WHICH, delta=st.sampled_from([0.2, 0.5, 0.9]))
    def trimmed_is_exact(self, j, delta):
        wanted = self.plain[j].estimate(delta)
        if wanted is None:
            with pytest.raises(NoThresholdError):
                self.trimmed[j].estimate(delta)
            return
        if wanted["threshold"] < self.trimmed[j]._floor:  # strange data: too many X are large
            with pytest.raises(InvalidInput, match="dropped for lack of room"):
                self.trimmed[j].estimate(delta)
            return
        got = self.trimmed[j].estimate(delta)
        for figure, exact in ((got.threshold, wanted["threshold"]), (got.value, wanted["mean"])):
            assert abs(mpf(figure) - exact) <= mpf(2) ** -52 * abs(exact) + mpf("5e-324")
        assert got.share_trimmed == float(wanted["trimmed"]) / len(self.plain[j].x)

    @rule(j=WHICH, v=st.sampled_from([1e-3, 1.0, 1e6]))
    def catoni_is_within_its_error(self, j, v):
        data = self.kept[j]
        if len(data) < 4.0 * math.log(20.0):
            return
        wanted = catoni_mean(data, v=v, delta=0.1)
        error = self.catoni[j].error(0.1, v=v)
        spread = float(np.abs(np.array(data)).max())
        got = self.catoni[j].estimate(0.1, v=v)
        assert abs(got.value - wanted.value) <= error + 1e-11 * min(
            spread, abs(wanted.value) + math.sqrt(v)
        ) + 1e-11 * (spread if spread < 1e3 else 0.0)

    @rule(j=WHICH)
    def median_stays_among_the_data(self, j):
        data = self.kept[j]
        if data:
            value = self.median[j].estimate(0.2).value
            slack = 1e-12 * max(abs(min(data)), abs(max(data)))
            assert min(data) - slack <= value <= max(data) + slack
            if len(data) < 32 * 19 and sorted(self.median[j].to_dict()["blocks"]) == sorted(data):
                order = self.median[j].to_dict()["blocks"]
                assert value == pytest.approx(median_of_means(order, delta=0.2).value, rel=1e-12, abs=slack)

    @invariant()
    def nothing_is_forgotten(self):
        for j in range(3):
            assert self.trimmed[j].n == self.median[j].n == self.catoni[j].n == len(self.kept[j])


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
