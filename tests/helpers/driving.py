"""Run a policy's hooks step by step: compiled as in the library, or interpreted."""

from functools import partial

import numpy as np

from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.random import streams, uniform

_entries = {}  # looking an entry up in the library takes longer than a short run


class Live:
    """The compiled hooks of a policy over one state, which grows when it is full."""

    def __init__(self, policy, arms, horizon=None, state=None):
        self.policy = policy = policy.prepared(horizon)
        self.arms = arms
        self.p = policy.params()
        self.s = policy.start(arms, horizon, np.zeros(4, dtype=np.uint64)) if state is None else state
        self.grown = 0
        self._flat = flat((self.p, self.s))
        self._own = {}

    def _entry(self, loop, hooks, *like):
        if loop not in self._own:
            self._own[loop] = self._shared(loop, hooks, *like)
        return self._own[loop]

    def _shared(self, loop, hooks, *like):
        chosen = self.policy.hooks(*hooks)
        key = (type(self), loop, type(self.policy), type(self.s), *chosen[:1], tuple(map(type, self.p)))
        if key not in _entries:
            bound = partial(loop, *chosen)
            _entries[key] = self.make(bound, (self.p, self.s, *like))
        return _entries[key]

    def make(self, bound, args):
        return compiled(bound, label=f"{self.policy.label} (test)", args=args)

    def _grow(self, must):
        if must:
            self.grown += 1
            self.s = self.policy.grown(self.s)
            self._flat = flat((self.p, self.s))

    def follow_0_2(self):
        """Let pulls without a reward not count, as in Robandit 0.2, whose logs are replayed so."""
        self.s.unrewarded[:] = 0

    def ask(self):
        return int(self._entry(loops.ask, ("select",))(*self._flat))

    def tell(self, arm, reward):
        self.late(arm, reward, loops.NOW)

    def issue(self, arm):
        return float(self._entry(loops.issue, ("take",), 0)(*self._flat, arm))

    def late(self, arm, reward, mark):
        entry = self._entry(loops.tell, ("take", "update", "full"), 0, 0.0, 0.0)
        self._grow(entry(*self._flat, arm, reward, mark))

    def forget(self, arm, mark):
        self._entry(loops.forget, ("expire",), 0, 0.0)(*self._flat, arm, mark)

    def describe(self):
        out = np.zeros((self.arms, len(self.policy.columns)))
        self._entry(loops.describe, ("estimate",), out)(*self._flat, out)
        return {name: out[:, j] for j, name in enumerate(self.policy.columns)}

    def replay(self, rewards, steps):
        """Let the policy choose ``steps`` times, with the rewards ``rewards[arm]`` in order; return the arms chosen."""
        used = np.zeros(self.arms, dtype=np.int64)
        chosen = np.zeros(steps, dtype=np.int64)
        t = 0
        while t < steps:
            entry = self._entry(replay, ("select", "take", "update", "full"), rewards, used, chosen, t)
            t = entry(*self._flat, rewards, used, chosen, t)
            self._grow(t < steps or self.policy.hooks("full")[0](self.p, self.s))
        return chosen


class Plain(Live):
    """The same without compilation."""

    def __init__(self, policy, arms, horizon=None, state=None):
        super().__init__(policy, arms, horizon, state)
        self._flat = (self.p, self.s)

    def make(self, bound, args):
        return bound

    def _grow(self, must):
        super()._grow(must)
        self._flat = (self.p, self.s)


def replay(select, take, update, full, p, s, rewards, used, chosen, t):
    """Play with given rewards until the end, or until the state must grow; return the time reached."""
    while t < chosen.shape[0]:
        arm = select(p, s)
        update(p, s, arm, rewards[arm, used[arm] % rewards.shape[1]], take(p, s, arm))
        used[arm] += 1
        chosen[t] = arm
        t += 1
        if full(p, s):
            break
    return t


def seeded(run, seed=0):
    """Give a run the random stream of a seed, and return it."""
    run.s.rng[:] = streams(np.random.SeedSequence(seed), 1)[0]
    return run


def asked(run):
    """Return the arm chosen and the uniform number drawn for it."""
    row = run.s.rng.copy()
    with np.errstate(over="ignore"):
        return run.ask(), float(uniform(row))
