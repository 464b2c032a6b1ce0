"""APE^2: the laws of its perturbations, decisions of the formula for the same uniform numbers, invalid parameters."""

import math
from typing import get_args

import numpy as np
import pytest
from scipy import stats

import robandit as rb
from helpers.driving import Live, seeded
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_p_robust import SlowAPE2
from robandit.errors import InvalidInput
from robandit.kernel.random import exponential, streams
from robandit.policies import APE2
from robandit.policies.p_robust import ape2

PERTURBATIONS = get_args(ape2.Perturbation)
STEPS = 300


@pytest.mark.independent("APE2")
@pytest.mark.parametrize("perturbation", PERTURBATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_formula(kind, perturbation):
    arms, eps, c = [(2, 1.0, 1.0), (5, 0.4, 0.3)][len(kind) % 2]
    rng = np.random.default_rng(arms)
    stream = streams(np.random.SeedSequence(arms), 1)[0]
    live = Live(APE2(eps=eps, c=c, perturbation=perturbation), arms)
    live.s.rng[:] = stream
    slow = SlowAPE2(arms, eps, c, perturbation, stream)
    for step in range(STEPS):
        arm = live.ask()
        assert arm == slow.choose(), step
        reward = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert live.s.rng.tolist() == slow.rng.tolist()
    columns = live.describe()
    assert columns["mean"] == pytest.approx([slow.mean(arm) for arm in range(arms)], rel=1e-11, abs=1e-13)
    assert columns["scale"] == pytest.approx([slow.width(arm) for arm in range(arms)])


@pytest.mark.parametrize("perturbation", ["pareto", "frechet"])
def test_many_arms_have_another_law(perturbation):
    stream = streams(np.random.SeedSequence(8), 1)[0]
    live = Live(APE2(eps=1.0, perturbation=perturbation), 60)
    live.s.rng[:] = stream
    slow = SlowAPE2(60, 1.0, 1.0, perturbation, stream)
    for _ in range(150):
        arm = live.ask()
        assert arm == slow.choose()
        live.tell(arm, -0.1 * arm)
        slow.learn(arm, -0.1 * arm)


def drawn(perturbation, arms, eps, count):
    """Return perturbations drawn as the policy draws them."""
    policy = APE2(eps=eps, perturbation=perturbation)
    state = policy.start(arms, None, streams(np.random.SeedSequence(11), 1)[0])
    kind = policy.params().kind
    with np.errstate(over="ignore"):
        return [ape2.perturbation(kind, state.law, exponential(state.rng)) for _ in range(count)]


@pytest.mark.parametrize(
    ("perturbation", "arms", "eps", "law", "wrong"),
    [
        ("weibull", 3, 0.5, stats.weibull_min(1.0), stats.weibull_min(1.2)),
        ("gamma", 3, 0.5, stats.gamma(1.0), stats.gamma(1.2)),
        ("gev", 3, 0.5, stats.genextreme(0.0), stats.genextreme(-0.2)),
        ("pareto", 2, 1.0, stats.pareto(4.0), stats.pareto(4.8)),
        ("pareto", 2, 0.5, stats.pareto(4.5), stats.pareto(4.0)),
        ("pareto", 200, 1.0, stats.pareto(math.log(200), scale=math.log(200)), stats.pareto(4.0)),
        ("frechet", 2, 1.0, stats.invweibull(4.0), stats.invweibull(4.8)),
        ("frechet", 54, 1.0, stats.invweibull(4.0), stats.invweibull(math.log(54), scale=math.log(54))),
        ("frechet", 55, 1.0, stats.invweibull(math.log(55), scale=math.log(55)), stats.invweibull(4.0)),
    ],
)
def test_perturbations_follow_their_laws(perturbation, arms, eps, law, wrong):
    values = drawn(perturbation, arms, eps, 10_000)
    assert stats.kstest(values, law.cdf).pvalue > 0.01
    assert stats.kstest(values, wrong.cdf).pvalue < 1e-6


@pytest.mark.parametrize("perturbation", PERTURBATIONS)
def test_the_rarest_uniforms_give_finite_perturbations(perturbation):
    """The uniform 1 gives an exponential variable of 0; the smallest, 2^-53, one of 36.7."""
    policy = APE2(eps=1.0, perturbation=perturbation)
    law, kind = policy.init(2, None).law, policy.params().kind
    ends = [ape2.perturbation(kind, law, e) for e in (0.0, 2.0**-53, 1.0, 53 * math.log(2))]
    assert all(map(math.isfinite, ends))
    assert ends in (sorted(ends), sorted(ends, reverse=True))


def test_every_draw_is_new_and_arms_differ():
    """With equal data each of two arms is chosen half of the time: 200 of 400 draws, within 5 standard deviations."""
    live = seeded(Live(APE2(eps=1.0), 2), 1)
    live.tell(0, 1.0)
    live.tell(1, 1.0)
    assert abs(sum(live.ask() for _ in range(400)) - 200) < 50


def test_every_perturbation_learns():
    """Uniform play costs 10,000."""
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=2.2)
    policies = [APE2(eps=1.0, perturbation=name) for name in PERTURBATIONS]
    result = rb.simulate(policies, problem, 20_000, 10, seed=0, progress=False)
    regret = dict(zip(PERTURBATIONS, result.regret[:, :, -1].mean(axis=1), strict=True))
    assert max(regret.values()) < 1500
    assert regret["weibull"] == regret["gamma"] != regret["gev"]


@pytest.mark.parametrize(
    ("parameters", "name", "rule"),
    [
        ({"eps": -0.5}, "eps", "a number with 0 < eps <= 1"),
        ({"eps": 1e-17}, "eps", "a number with 0 < eps <= 1"),
        ({"c": math.nan}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"c": 0.0}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"perturbation": "normal"}, "perturbation", "one of 'weibull', 'gamma', 'gev', 'pareto', 'frechet'"),
    ],
)
def test_invalid_parameters(parameters, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        APE2(**parameters)
