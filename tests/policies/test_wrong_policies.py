"""Mistakes that people make when they write a policy, and the messages they get."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, KernelError
from robandit.policies import base
from robandit.policies.index import IndexPolicy

PROBLEM = rb.problems.gaussian(means=[0.0, 1.0])
MEMBERS = (property, classmethod, staticmethod)


class State(NamedTuple):
    counts: Any


class Wild(rb.Policy):
    """Chooses a given arm."""

    which: int = 0

    def init(self, arms, horizon):
        return State(np.zeros(arms, dtype=np.int64))

    @staticmethod
    def select(p, s):
        return p.which

    @staticmethod
    def update(p, s, arm, reward):
        s.counts[arm] += 1


@pytest.mark.parametrize("which", [2, 5, 10**8, -1, -2, -3])
def test_an_arm_that_does_not_exist_is_rejected_before_the_state_changes(which):
    with pytest.raises(KernelError, match=rf"chose arm {which}, but arms are 0 to 1: its select\(\) is wrong"):
        rb.simulate(Wild(which=which), PROBLEM, 100, 1, seed=0)
    bandit = rb.Bandit(["a", "b"], Wild(which=which))
    for ask in (bandit.select, bandit.decide):
        with pytest.raises(KernelError, match=f"chose arm {which}"):
            ask()
    assert bandit.counters() == {"rewards": 0, "open": 0}


def test_an_arm_that_exists_is_played():
    assert rb.simulate(Wild(which=1), PROBLEM, 100, 1, seed=0).pulls.tolist() == [[[0, 100]]]


def starting(make):
    class Starting(Wild):
        def init(self, arms, horizon):
            return make(arms)

    return Starting()


class WithRng(NamedTuple):
    counts: Any
    rng: Any


def shared(arms):
    array = np.zeros(arms, dtype=np.int64)
    return NamedTuple("Two", [("a", Any), ("b", Any)])(array, array)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda k: None, "init of Starting returned NoneType: it must be a NamedTuple"),
        (lambda k: (np.zeros(k),), "returned tuple"),
        (lambda k: {"counts": np.zeros(k)}, "returned dict"),
        (lambda k: np.zeros(k), "returned ndarray"),
        (lambda k: State(3), "counts = int: it must be an array of numbers"),
        (lambda k: State([0, 0]), "counts = list"),
        (lambda k: State(np.zeros(k, dtype=object)), "counts = object"),
        (lambda k: State(np.zeros(k, dtype="i8,f8")), "counts = .*f0"),
        (lambda k: State(np.zeros((k, 2), dtype=np.int64)[:, 0]), "counts that is not contiguous"),
        (lambda k: State(np.broadcast_to(np.int64(0), (k,))), "not contiguous or not writable"),
        (shared, "a that shares its memory with another field"),
        (lambda k: WithRng(np.zeros(k, dtype=np.int64), np.zeros(3, dtype=np.uint64)), r"rng = uint64\(3,\)"),
        (lambda k: WithRng(np.zeros(k, dtype=np.int64), np.zeros(4)), r"rng = float64\(4,\)"),
    ],
)
def test_states_that_compiled_hooks_cannot_work_on(make, says):
    for start in (lambda p: rb.simulate(p, PROBLEM, 10, 1, seed=0), lambda p: rb.Bandit([1, 2], p)):
        with pytest.raises(InvalidInput, match=says):
            start(starting(make))


class NoSelect(rb.Policy):
    init = Wild.init
    update = staticmethod(Wild.update)


class NotStatic(Wild):
    def select(self, p, s):
        return 0


class TooMany(Wild):
    @staticmethod
    def select(p, s, t):
        return 0


class NoInit(rb.Policy):
    select = staticmethod(Wild.select)
    update = staticmethod(Wild.update)


class NoIndex(IndexPolicy):
    row_length = 1

    @staticmethod
    def add(p, s, arm, reward):
        s.arms[arm, 0] += 1.0


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (NoIndex(), r"NoIndex has no select: .*, or write index for its template"),
        (NoSelect(), r"NoSelect has no select: write it as a static method, select\(p, s\)"),
        (NotStatic(), r"is not static: put @staticmethod above it, and write select\(p, s\)"),
        (TooMany(), r"has 3 parameters: write select\(p, s\)"),
        (NoInit(), r"NoInit has no init\(self, arms, horizon\)"),
    ],
)
def test_hooks_that_are_missing_or_misshapen(policy, says):
    with pytest.raises(InvalidInput, match=says):
        rb.simulate(policy, PROBLEM, 10, 1, seed=0)


class Unannotated(Wild):
    bold = 3.0

    @staticmethod
    def select(p, s):
        return int(p.bold) - 3


def test_a_parameter_without_annotation():
    with pytest.raises(KernelError, match=r"p has no bold .*declare it as an annotated field"):
        rb.simulate(Unannotated(), PROBLEM, 10, 1, seed=0)


@pytest.mark.parametrize("name", ["start", "init", "take", "name", "tag"])
def test_a_parameter_named_like_a_method(name):
    with pytest.raises(InvalidInput, match=f"Clash has a parameter '{name}', which is a method of Policy: rename it"):
        type("Clash", (Wild,), {"__annotations__": {name: float}, name: 1.0, "__module__": __name__})
    assert f"{__name__}:Clash" not in rb.policies.base._registry


@pytest.mark.parametrize("name", sorted(base._MACHINERY))
def test_machinery_is_final(name):
    with pytest.raises(
        InvalidInput, match=f"Clash overrides {name}, which is final in Policy: {base._MACHINERY[name]}"
    ):
        type("Clash", (Wild,), {name: lambda self: None, "__module__": __name__})
    assert f"{__name__}:Clash" not in base._registry
    assert name in rb.Policy.__doc__


@pytest.mark.parametrize("name", sorted(base._REMOVED))
def test_what_has_no_effect_any_more_is_refused(name):
    with pytest.raises(InvalidInput, match=f"Clash defines {name}, which has no effect since Robandit 0.3 "):
        type("Clash", (Wild,), {name: (), "__module__": __name__})


@pytest.mark.parametrize(
    ("call", "way_out"),
    [
        (lambda: rb.AdaKLUCB(schedule="practical"), "Robandit 0.2.0 plays the others"),
        (lambda: rb.AdaKLUCB(schedule="proved", center=None), r"AdaKLProved\(\) what schedule=\"proved\""),
        (lambda: rb.AdaRUCB(center="median"), "Robandit 0.2.0 plays center="),
    ],
)
def test_parameters_of_earlier_versions_are_refused_with_the_way_out(call, way_out):
    with pytest.raises(TypeError, match=f"it is gone since Robandit 0.3. .*{way_out}"):
        call()


def test_machinery_of_a_base_that_is_no_policy():
    """Mixins are no way around it."""
    mixin = type("Mixin", (), {"start": lambda self: None})
    with pytest.raises(InvalidInput, match="Clash overrides start"):
        type("Clash", (mixin, Wild), {"__module__": __name__})


def test_every_public_member_is_in_a_tier():
    """Class attributes have docstrings of their own."""
    methods = {name for name, member in vars(rb.Policy).items() if callable(member) or isinstance(member, MEMBERS)}
    missing = [name for name in methods if not name.startswith("_") and f"`{name}`" not in rb.Policy.__doc__]
    assert not missing


def test_abstract_policies_are_not_registered():
    for name in ("IndexPolicy", "MomentsPolicy", "Policy"):
        with pytest.raises(InvalidInput, match="is not known here"):
            rb.Policy.from_dict({"policy": name})


def test_two_policies_with_one_name():
    class Other(Wild):
        label = "Wild"

    with pytest.raises(InvalidInput, match="have the same name, Wild: give one class another label"):
        rb.simulate([Wild(), Other()], PROBLEM, 10, 1, seed=0)


def test_parameters_that_would_fill_the_memory():
    for c, delta_exp in ((1e300, 3.0), (5.8, 1e308), (1e4, 1.1)):
        with raises(InvalidInput, parameter="c * delta_exp", rule="at most 10000"):
            rb.AdaRUCB(c=c, delta_exp=delta_exp)
