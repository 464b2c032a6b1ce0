"""The store keeps every arm's rewards, in order, while stretches grow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robandit.policies._parts.reward_store import START, USED, append, empty_store, enlarged, store_full


class Store:
    """A store as a state holds it."""

    def __init__(self, arms, rows, room):
        self.pool, self.slots = empty_store(arms, rows, room)

    def add(self, arm, *numbers):
        self.pool[:, append(self.slots, arm)] = numbers
        if store_full(None, self):
            self.pool, self.slots = enlarged(self.pool, self.slots)

    def of(self, arm):
        start, used = self.slots[arm, START], self.slots[arm, USED]
        return self.pool[:, start : start + used]


@given(st.lists(st.integers(0, 3), max_size=300), st.integers(1, 5))
def test_every_arm_keeps_its_own_numbers_in_order(arms, room):
    store = Store(4, 2, room)
    seen = [[] for _ in range(4)]
    for j, arm in enumerate(arms):
        store.add(arm, float(j + 1), -float(j + 1))
        seen[arm].append(float(j + 1))
    for arm in range(4):
        assert store.of(arm)[0].tolist() == seen[arm]
        assert store.of(arm)[1].tolist() == [-x for x in seen[arm]]


def test_memory_follows_the_rewards_not_the_busiest_arm():
    store = Store(100, 1, 32)
    for j in range(100_000):
        store.add(7, float(j))
    assert store.pool.size < 4 * (100_000 + 100 * 32)
    assert np.array_equal(store.of(7)[0], np.arange(100_000.0))


def test_it_is_full_when_an_arm_has_no_room_left():
    store = Store(2, 1, 3)
    for arm in (0, 1, 0, 1):
        append(store.slots, arm)
        assert not store_full(None, store)
    append(store.slots, 1)
    assert store_full(None, store)
    store.pool, store.slots = enlarged(store.pool, store.slots)
    assert not store_full(None, store)
    assert store.pool.shape == (1, 9)
