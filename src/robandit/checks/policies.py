"""The checks that every policy must pass."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from robandit.checks.chances import check_chance
from robandit.checks.outlooks import check_outlook, choice
from robandit.errors import InvalidInput, KernelError, NotApplicable
from robandit.kernel import compiled
from robandit.kernel.random import streams
from robandit.laws import Gaussian, Pareto, ZeroInflated
from robandit.laws.table import fill
from robandit.live.bandit import Bandit
from robandit.live.engine import RunningPolicy
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.classic.ucb1 import UCB1
from robandit.problems import Problem, bernoulli
from robandit.simulate.result import Result
from robandit.simulate.simulation import simulate

ARMS = 3
HORIZON = 400
INTERPRETED = 60
LONG = 4000  # AdaR-UCB ignores rewards until each arm has a hundred of them
LONGER = 100_000  # Kurtosis UCB ignores rewards until each arm has twenty thousand of them


def check_policy(policy: Policy) -> list[str]:
    """Run every check that a policy must pass; raise AssertionError with the reason if one fails. Return what was skipped, and why.

    Values: repr, hash, equality and JSON depend only on the parameters. Simulation: every arm is tried. The same seed gives the
    same bytes on any number of threads, and another seed gives different bytes if the policy uses rewards. Other policies have
    no influence. An ``outlook`` changes no choice. Live: `select` has no side effects. `select` and `update` agree with the
    simulation at every pull. Rewards may arrive late and in any order. A bandit continues unchanged after saving and loading.
    Choices are deterministic, or ``chance`` returns their probabilities, which are compared with frequencies. Hooks that run as
    plain Python leave the state of compiled ones. Only allowed arms are chosen, if the policy has ``respects_allowed``.

    Required parameters that are None are taken from the problem of the checks.

    >>> from robandit import UCB1
    >>> check_policy(UCB1())
    []
    """
    check_policy_given(policy)
    try:
        informed = policy.informed_by(_problem())
    except NotApplicable:  # a moment of that problem is infinite
        informed = policy.informed_by(bernoulli(means=[0.2, 0.8]))
    for check in _CHECKS:
        check(informed)
    skipped = []
    if policy.respects_allowed:
        check_allowed_arms(informed)
    else:
        reason = f"respects_allowed is False, so a bandit of {policy!r} cannot pause arms"
        skipped.append(f"arms that are not allowed: {reason}")
    return skipped


def _problem() -> Problem:
    return Problem([-Pareto(tail=2.2), ZeroInflated(-Pareto(tail=1.8, scale=2.0), 0.3), Gaussian(mean=-3.0, sd=1.0)])


def _play(policy: Policy, seed: int = 5, **options: Any) -> Result:
    options = {"horizon": HORIZON, "replications": 3, "threads": 1} | options
    return simulate(policy, _problem(), seed=seed, progress=False, **options)


def check_value(policy: Policy) -> None:
    """Check that the policy is immutable and hashable, and survives JSON."""
    try:
        copy = Policy.from_dict(json.loads(json.dumps(policy.to_dict())))
    except (TypeError, InvalidInput) as error:
        raise AssertionError(f"{policy!r} does not survive JSON: {error}") from error
    assert copy == policy, f"{policy!r} does not survive JSON: it came back as {copy!r}"
    assert hash(copy) == hash(policy), f"{policy!r} and its copy have different hashes"
    assert type(policy).__name__ in repr(policy), f"repr {policy!r} does not name the class"
    try:
        policy.label = "other"  # type: ignore[misc]
    except AttributeError:
        pass
    else:
        raise AssertionError(f"{policy!r} can be changed after it was made")


def check_every_arm_is_tried(policy: Policy) -> None:
    """Check that every arm is tried, for negative and for positive rewards."""
    if not policy.uses_rewards:
        return
    for sign in (-1.0, 1.0):
        problem = Problem([Gaussian(mean=sign * 5.0, sd=0.5), Gaussian(mean=sign * 6.0, sd=0.5)])
        pulls = simulate(policy, problem, HORIZON, 2, seed=1, threads=1, progress=False).pulls
        assert pulls.min() > 0, f"{policy!r} never tried some arm: pulls {pulls.tolist()} with rewards of sign {sign}"


def check_reproducible(policy: Policy) -> None:
    """Check that the same seed gives the same bytes on one and on two threads, and other seeds give different bytes."""
    one, again, two = _play(policy), _play(policy), _play(policy, threads=2)
    for other in (again, two):
        assert one.pulls.tobytes() == other.pulls.tobytes(), f"{policy!r} is not reproducible: pulls differ"
        assert one.regret.tobytes() == other.regret.tobytes(), f"{policy!r} is not reproducible: regret differs"
    if policy.uses_rewards:
        different = any(
            len({_play(policy, seed=s, horizon=horizon).regret.tobytes() for s in range(8)}) > 1
            for horizon in dict.fromkeys(min(h, policy.longest or h) for h in (HORIZON, LONG, LONGER))
        )
        assert different, f"{policy!r} plays the same for 8 seeds: it ignores rewards or the seed"


def check_alone_or_together(policy: Policy) -> None:
    """Check that another policy in the same simulation has no influence."""
    together = simulate([UCB1(scale=7.5), policy], _problem(), HORIZON, 3, seed=5, threads=1, progress=False)
    same = together.pulls[1].tobytes() == _play(policy).pulls[0].tobytes()
    assert same, f"{policy!r} depends on the other policies of a simulation"


def check_pulls_add_up(policy: Policy) -> None:
    """Check that every pull is counted once, also for odd and tiny horizons."""
    for horizon in (1, 2, 3, 7, HORIZON + 1):
        result = _play(policy, horizon=horizon)
        made = result.pulls.sum(axis=2)
        assert (made == horizon).all(), f"{policy!r} made {made} of {horizon} pulls"
        expected = result.pulls[0] @ result.problem.gaps
        np.testing.assert_allclose(result.regret[0, :, -1], expected, rtol=1e-12, err_msg=f"regret of {policy!r}")


def check_asking_never_learns(policy: Policy) -> None:
    """Check that repeated calls of `select` return the same arm and change no later decision."""
    source = np.random.default_rng(0)
    policy = policy.prepared(HORIZON)
    once, often = Bandit(range(ARMS), policy, seed=3, compile="now"), Bandit(range(ARMS), policy, seed=3, compile="now")
    for step in range(HORIZON):
        arm = once.select()
        answers = set()
        rng = getattr(often._engine.state, "rng", np.zeros(0, dtype=np.uint64))
        before = rng.copy()
        for _ in range(3):
            rng[:] = before  # a random policy must draw the same numbers again
            often._pick = -1  # clear the bandit's cached answer, so that the policy is asked
            answers.add(often.select())
        often.estimates()
        assert answers == {arm}, f"{policy!r} at pull {step}: asked once it returns {arm!r}, asked often {answers!r}"
        reward = -float(source.pareto(2.0)) - 0.1 * arm
        once.update(arm, reward)
        often.update(arm, reward)


def check_live_agrees(policy: Policy) -> None:
    """Check that `select` and `update` make the same choices as a simulation with the same rewards."""
    problem = _problem()
    regret = _play(policy, replications=1, checkpoints=range(1, HORIZON + 1)).regret[0, 0]
    words = streams(np.random.SeedSequence(5, spawn_key=(0,)), ARMS + 1)
    rewards = np.empty((ARMS, HORIZON))
    for arm in range(ARMS):
        args = (*problem.tabulate(), arm, words[arm + 1], rewards[arm])
        compiled(fill, label="the law sampler", args=args)(*args)
    policy = policy.prepared(HORIZON)
    bandit = Bandit(range(ARMS), policy, compile="now")
    state = policy.start(ARMS, HORIZON, words[0])  # a bandit does not pass the horizon
    bandit._engine = RunningPolicy(policy, state, [True] * ARMS, None)
    pulls = np.zeros(ARMS, dtype=np.int64)
    for step in range(HORIZON):
        arm = bandit.select()
        bandit.update(arm, float(rewards[arm, pulls[arm]]))
        pulls[arm] += 1
        agrees = abs(regret[step] - pulls @ problem.gaps) <= 1e-9 * HORIZON
        assert agrees, f"{policy!r} at pull {step}: a live bandit chooses {arm!r}, the simulation another arm"


def check_late_rewards(policy: Policy) -> None:
    """Check that the policy learns all rewards that arrive late and out of order."""
    rng = np.random.default_rng(1)
    bandit = Bandit(range(ARMS), policy.prepared(HORIZON + 1), seed=3, compile="now")
    for _ in range(HORIZON // 20):
        decisions = [bandit.decide() for _ in range(20)]
        order = rng.permutation(20)
        bandit.expire(decisions[order[0]])
        for j in order[1:]:
            bandit.reward(decisions[j], -float(rng.pareto(2.0)) - decisions[j].arm)
    counts = bandit.counters()
    assert counts["open"] == 0, f"{policy!r} keeps {counts['open']} decisions open"
    assert counts["rewards"] == HORIZON // 20 * 19, f"{policy!r} learned {counts['rewards']} late rewards"
    bandit.select()  # evaluates all indices in compiled code; estimates() would take seconds for RMM-UCB, in plain Python
    tried = [row["pulls"] for row in bandit.estimates()]
    assert min(tried) > 0 or not policy.uses_rewards, f"{policy!r} never tried some arm with late rewards: {tried}"


def check_saved_goes_on(policy: Policy) -> None:
    """Check that a bandit makes the same decisions after saving and loading."""
    rng = np.random.default_rng(2)
    policy = policy.prepared(HORIZON + 1)
    bandit = Bandit(range(ARMS), policy, seed=3, compile="now")
    with tempfile.TemporaryDirectory() as folder:
        for step in range(HORIZON):
            if step == HORIZON // 2 + 1:
                decision = bandit.decide()
                bandit.save(Path(folder) / "bandit")
                copy = Bandit.load(Path(folder) / "bandit", compile="now")
                assert copy.open == (decision,), f"{policy!r} lost an open decision: {copy.open} for {decision}"
                for each in (bandit, copy):
                    each.reward(decision.id, -1.0)
            arm = bandit.select()
            reward = -float(rng.pareto(2.0)) - 0.1 * arm
            bandit.update(arm, reward)
            if step > HORIZON // 2:
                assert copy.select() == arm, f"{policy!r} decides differently after load, at pull {step}"
                copy.update(arm, reward)


def check_allowed_arms(policy: Policy) -> None:
    """Check that only allowed arms are chosen, and that excluding arms from one choice changes no later choice."""
    rng = np.random.default_rng(6)
    policy = policy.prepared(HORIZON)
    words = streams(np.random.SeedSequence(4), 1)[0]
    free, briefly, often = (
        RunningPolicy(policy, policy.start(ARMS, None, words), [True] * ARMS, None) for _ in range(3)
    )
    among = tuple(range(ARMS))

    for step in range(HORIZON):
        if rng.random() < 0.2:
            mask = rng.random(ARMS) < 0.5
            mask[rng.integers(ARMS)] = True
            among = tuple(np.flatnonzero(mask).tolist())
        stream = getattr(briefly.state, "rng", np.zeros(0, dtype=np.uint64))
        before = stream.copy()
        choice(briefly, among, step)
        stream[:] = before  # a random policy must draw the same numbers again
        after, arm = choice(briefly, None, step), choice(free, None, step)
        assert after == arm, f"{policy!r} at pull {step} chooses {after} after an exclusion, and {arm} without it"
        reward = -float(rng.pareto(2.0)) - 0.1 * arm
        free.tell(arm, reward)
        briefly.tell(arm, reward)
        arm = choice(often, among, step)
        often.tell(arm, -float(rng.pareto(2.0)) - 0.1 * arm)


def check_interpreted_agrees(policy: Policy) -> None:
    """Check that hooks that run as plain Python leave the same state as compiled ones. A live bandit begins with plain Python."""
    rng = np.random.default_rng(7)
    policy = policy.prepared(HORIZON)
    words = streams(np.random.SeedSequence(8), 1)[0]
    plain, fast = (
        RunningPolicy(policy, policy.start(ARMS, None, words), [True] * ARMS, None, compile)
        for compile in ("never", "now")
    )
    for step in range(INTERPRETED):
        try:
            arms = [engine.ask(None) for engine in (plain, fast)]
            reward = -float(rng.pareto(2.0)) - 0.1 * arms[0]
            for engine in (plain, fast):
                engine.tell(arms[0], reward)
        except KernelError:  # as plain Python, a hook raised an error: a bandit then compiles at once
            return
        for name, one, other in zip(plain.state._fields, plain.state, fast.state, strict=True):
            if arms[0] != arms[1] or one.tobytes() != other.tobytes():
                hint = "in hooks, write x * x for x ** 2, math.exp and math.log for np.exp and np.log, and avoid math.lgamma"
                raise AssertionError(
                    f"{policy!r} at pull {step}: plain Python and compiled code differ in {name}; {hint}"
                )


_CHECKS = (
    *(check_value, check_outlook, check_every_arm_is_tried, check_reproducible, check_alone_or_together),
    *(check_pulls_add_up, check_asking_never_learns, check_live_agrees, check_late_rewards, check_saved_goes_on),
    *(check_chance, check_interpreted_agrees),
)
