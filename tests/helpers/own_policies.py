"""Policies that users might write, for the tests of the simulation and of the live bandit."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from robandit.kernel.random import uniform
from robandit.policies import UCB1, Policy
from robandit.policies.assumptions import Assumption

CENTRED = Assumption("centred", "truncated non-positivity of the best arm about its median", point="median")


class Centred(UCB1):
    """A policy with an assumption about the median, and nothing to compile beyond UCB1."""

    about = replace(UCB1.about, assumption=CENTRED)


STATES = []  # of recorders, in the order in which they were made or grew


class Tape(NamedTuple):
    """The rewards of a recorder: rows of (arm, reward)."""

    seen: np.ndarray
    count: np.ndarray  # rows in use, rewards without room, arms
    rng: np.ndarray


class Recorder(Policy):
    """Pulls arms in turn (or at random) and records every reward; its state starts with room for one."""

    stride: int = 1
    random: int = 0

    def init(self, arms, horizon):
        STATES.append(Tape(np.zeros((1, 2)), np.array([0, 0, arms]), np.zeros(4, dtype=np.uint64)))
        return STATES[-1]

    def grow(self, state):
        seen = np.zeros((2 * len(state.seen), 2))
        seen[: len(state.seen)] = state.seen
        STATES[-1] = state._replace(seen=seen)
        return STATES[-1]

    @staticmethod
    def select(p, s):
        if p.random != 0:
            return min(int(uniform(s.rng) * s.count[2]), s.count[2] - 1)
        return (s.count[0] * p.stride) % s.count[2]

    @staticmethod
    def update(p, s, arm, reward):
        if s.count[0] < s.seen.shape[0]:
            s.seen[s.count[0], 0] = arm
            s.seen[s.count[0], 1] = reward
            s.count[0] += 1
        else:
            s.count[1] += 1

    @staticmethod
    def full(p, s):
        return s.count[0] == s.seen.shape[0]


def tape(state):
    """Return the rewards that a recorder got from each arm, in order."""
    assert state.count[1] == 0, "rewards were lost"
    rows = state.seen[: state.count[0]]
    return [rows[rows[:, 0] == arm, 1] for arm in range(state.count[2])]


class Sums(NamedTuple):
    arms: np.ndarray  # sum, count
    rng: np.ndarray


def greedy_arm(s):
    """Return an arm without rewards, or else the arm with the largest mean."""
    best = 0
    for arm in range(s.arms.shape[0]):
        if s.arms[arm, 1] == 0.0:
            return arm
        if s.arms[arm, 0] / s.arms[arm, 1] > s.arms[best, 0] / s.arms[best, 1]:
            best = arm
    return best


class Greedy(Policy):
    """Epsilon-greedy: random, and not weighted."""

    eps: float = 0.3
    columns = ("mean",)

    def init(self, arms, horizon):
        return Sums(np.zeros((arms, 2)), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p, s):
        arms = s.arms.shape[0]
        if uniform(s.rng) <= p.eps:
            return min(int(uniform(s.rng) * arms), arms - 1)
        return greedy_arm(s)

    @staticmethod
    def chance(p, s, arm):
        arms = s.arms.shape[0]
        return p.eps / arms + (1.0 - p.eps if greedy_arm(s) == arm else 0.0)

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += reward
        s.arms[arm, 1] += 1.0

    @staticmethod
    def estimate(p, s, arm, out):
        out[0] = s.arms[arm, 0] / s.arms[arm, 1] if s.arms[arm, 1] > 0.0 else math.nan


class Weights(NamedTuple):
    logs: np.ndarray
    rng: np.ndarray


def chance(p, s, arm):
    """Return the probability of an arm: exponential weights, mixed with uniform play."""
    top = s.logs[0]
    for i in range(1, s.logs.shape[0]):
        top = max(top, s.logs[i])
    total = 0.0
    for i in range(s.logs.shape[0]):
        total += math.exp(s.logs[i] - top)
    return (1.0 - p.mixing) * math.exp(s.logs[arm] - top) / total + p.mixing / s.logs.shape[0]


class Exp3(Policy):
    """Exponential weights, with rewards divided by the probability of the choice."""

    rate: float = 0.05
    mixing: float = 0.2
    weighted = True
    columns = ("log_weight",)

    def init(self, arms, horizon):
        return Weights(np.zeros(arms), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p, s):
        left = uniform(s.rng)
        for arm in range(s.logs.shape[0] - 1):
            left -= chance(p, s, arm)
            if left <= 0.0:
                return arm
        return s.logs.shape[0] - 1

    @staticmethod
    def take(p, s, arm):
        return chance(p, s, arm)

    @staticmethod
    def update(p, s, arm, reward, mark):
        s.logs[arm] += p.rate * reward / mark

    @staticmethod
    def estimate(p, s, arm, out):
        out[0] = s.logs[arm]
