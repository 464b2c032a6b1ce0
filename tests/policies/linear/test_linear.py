"""Linear policies against their formulas, the research's reference values, and slow implementations that keep everything."""

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import t as student

import robandit as rb
from helpers.invalid import raises
from references.slow_linear import SlowClipped, SlowHeavy, SlowHvt, spreads
from robandit.checks.chances import choose_often
from robandit.errors import NotApplicable
from robandit.kernel import compiled
from robandit.kernel.build import flat
from robandit.kernel.random import streams
from robandit.policies.linear import clipped
from robandit.policies.linear.columns import for_columns
from robandit.policies.linear.model import dot

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose
TOLD = {"eps": 0.5, "nu": 1.5, "S": 2.0, "horizon": 1000}
EVERY = [
    *(rb.AdaClipTS(), rb.AdaClipUCB(), rb.LinUCB(), rb.LinTS(), rb.LinStudentTS(), rb.LinEpsilonGreedy()),
    *(rb.HvtUCB(**TOLD), rb.HeavyOFUL(**TOLD)),
]
A = clipped


class Run:
    """The hooks of a policy as plain Python."""

    def __init__(self, policy, arms=1):
        self.s = policy.start(arms, None, streams(np.random.SeedSequence(0), 1)[0])
        self.p, self.policy = policy.params(), policy
        names = ("select", "take", "update", "full", "estimate")
        self.hooks = dict(zip(names, policy.hooks(*names), strict=True))

    def take(self, arm, x):
        self.s.x[:] = x
        return self.hooks["take"](self.p, self.s, arm)

    def tell(self, arm, x, y, mark=None):
        mark = self.take(arm, x) if mark is None else mark
        self.s.x[:] = x
        self.hooks["update"](self.p, self.s, arm, y, mark)
        if self.hooks["full"](self.p, self.s):
            self.s = self.policy.grown(self.s)

    def at(self, arm, x):
        self.s.x[:] = x
        out = np.zeros(2)
        self.hooks["estimate"](self.p, self.s, arm, out)
        return out

    def ask(self, x):
        self.s.x[:] = x
        return self.hooks["select"](self.p, self.s)

    def chances(self, x):
        self.s.x[:] = x
        (chance,) = self.policy.hooks("chance")
        return np.array([chance(self.p, self.s, arm) for arm in range(len(self.s.arms))])


def sequence(i):
    return np.array([1.0, (3 * i % 7) / 7.0]), float(7 * i % 11) - 5.0 - 1000.0 * (i == 30)


def symmetric(triangle, d):
    full = np.zeros((d, d))
    full[np.tril_indices(d)] = triangle
    return full + np.tril(full, -1).T


def data(seed, n, d):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    return X, X @ rng.standard_normal(d) - np.exp(rng.standard_exponential(n) / 1.5)


# --- reference values of the research -----------------------------------------------------------------------------------


def test_reference_1_an_intercept_only():
    run = Run(rb.AdaClipTS())
    for y in (1.0, 2.0, 4.0):
        run.tell(0, [1.0], y)
    assert run.at(0, [1.0])[0] == pytest.approx(2.332889036988, abs=1e-11)
    assert run.s.arms[0, A.VARIANCE] == pytest.approx(2.334221926025, abs=1e-11)
    assert run.s.arms[0, A.THRESHOLD] == math.inf


@pytest.mark.parametrize(
    ("squares", "residuals", "a", "expected"),
    [
        (0.0, [1.0, 2, 3, 100], 2.0, math.sqrt(14.0)),
        (50.0, [5.0, -6, 40, -1000], 3.0, math.sqrt(111.0)),
        (10.0, [1.0, 1], 20.0, 1.0),
        (0.0, [0.0, 0], 2.0, math.inf),
    ],
)
def test_reference_2_thresholds(squares, residuals, a, expected):
    assert clipped.threshold(squares, np.array(residuals), len(residuals), a) == pytest.approx(expected, rel=1e-14)


REFERENCE_3 = {
    30: ((-1.355479246356, -1.224632897545), 3.549026460422, 10.626843632089, -0.235128049836),
    200: ((-1.839909597505, -0.428982038831), 8.791531865775, 21.407940872517, -0.063082045034),
}


@pytest.mark.parametrize("n", REFERENCE_3)
def test_reference_3_one_huge_loss(n):
    run = Run(rb.AdaClipTS(d=2))
    for i in range(1, n + 1):
        run.tell(0, *sequence(i))
    theta, strong, weak, added = REFERENCE_3[n]
    row = run.s.arms[0]
    assert run.s.theta[0] == pytest.approx(theta, abs=1e-11)
    assert [row[A.THRESHOLD], row[A.WEAK], row[A.ADDED]] == pytest.approx([strong, weak, added], abs=1e-9)
    assert row[A.SHIFT] == 2.0


def reference_4(policy=None):
    run = Run(policy or rb.AdaClipTS(d=2), 3)
    for a in range(3):
        for i in range(1, 41):
            x, y = sequence(i + 5 * a)
            run.tell(a, x, y + 0.5 * a)
    return run


def test_reference_4_means_and_widths():
    run = reference_4()
    found = np.array([run.at(a, [1.0, 0.5]) for a in range(3)])
    assert found[:, 0] == pytest.approx([-0.020609785717, 0.176102555279, 0.680259268660], abs=1e-10)
    assert found[:, 1] == pytest.approx([0.444705020220, 0.452818684006, 0.456741137262], abs=1e-10)
    assert (run.s.draws[:, 2] == 43.0).all()


def test_reference_4_propensities_are_the_integral_and_the_frequencies():
    run = reference_4()
    found = run.chances([1.0, 0.5])
    centre, width, f = run.s.draws.T

    def density(z, a):
        others = [student.cdf((centre[a] + width[a] * z - centre[b]) / width[b], f[b]) for b in range(3) if b != a]
        return student.pdf(z, f[a]) * math.prod(others)

    exact = [integrate.quad(density, -60, 60, (a,), epsabs=1e-12, limit=500, points=[0])[0] for a in range(3)]
    assert found == pytest.approx(exact, abs=1e-9)
    # The research has the midpoint rule over 401 quantiles, which is off by 1.4e-5.
    assert found == pytest.approx([0.098036834, 0.189916929, 0.712046236], abs=2e-5)
    u = (np.arange(401) + 0.5) / 401
    rule = np.array([np.mean([density(z, a) / student.pdf(z, f[a]) for z in student.ppf(u, f[a])]) for a in range(3)])
    assert rule / rule.sum() == pytest.approx([0.098036834, 0.189916929, 0.712046236], abs=1e-8)
    draws, counts = 1_000_000, np.zeros(3, dtype=np.int64)
    words = streams(np.random.SeedSequence(6), draws)
    (select,) = run.policy.hooks("select")
    args = (run.p, run.s, words, counts)
    compiled(functools.partial(choose_often, select), label="select (check)", args=args)(*flat(args))
    sd = np.sqrt(draws * found * (1 - found))
    assert (np.abs(counts - draws * found) < 5 * sd).all()
    assert not (np.abs(counts - draws * np.roll(found, 1)) < 5 * sd).any()  # other chances would be noticed


def test_reference_5_lin_ucb():
    run = Run(rb.LinUCB(d=2))
    for i in (1, 2, 3):
        run.tell(0, *sequence(i))
    assert run.s.theta[0] == pytest.approx([1.645756457565, -1.007380073801], abs=1e-11)
    assert sum(run.at(0, [1.0, 0.5])) == pytest.approx(1.650301192227, abs=1e-11)


# --- slow implementations ----------------------------------------------------------------------------------------------


@pytest.mark.independent("AdaClipTS", "AdaClipUCB")
@pytest.mark.parametrize(("policy", "levels"), [(rb.AdaClipTS(d=4), (0.15, 0.5)), (rb.AdaClipUCB(d=4), (1.0, 1.0))])
def test_a_bounded_buffer_clips_as_if_everything_were_kept(policy, levels):
    run, slow, n = Run(policy, 2), [SlowClipped(4), SlowClipped(4)], 260
    X, Y = data(3, n, 4)
    for i in range(n):
        arm = int(i % 3 == 0)
        run.tell(arm, X[i], Y[i])
        slow[arm].update(X[i], Y[i])
    for arm, model in enumerate(slow):
        row = run.s.arms[arm]
        assert run.s.theta[arm] == pytest.approx(model.theta, rel=1e-7)
        expected = [model.M, model.M2, model.add, model.variance, model.weak_variance]
        assert row[[A.THRESHOLD, A.WEAK, A.ADDED, A.VARIANCE, A.WEAK_VARIANCE]] == pytest.approx(expected, rel=1e-6)
        assert symmetric(run.s.P[arm], 4) == pytest.approx(model.P, rel=1e-8, abs=1e-12)
    x = X[7]
    assert [run.at(arm, x) for arm in (0, 1)] == [pytest.approx(row[:2], rel=1e-6) for row in spreads(slow, x, levels)]
    assert row[A.USED] == clipped.ROOM  # the others are in the body
    assert row[A.THRESHOLD] < np.abs(run.s.residuals[1]).max()  # something is clipped


@pytest.mark.independent("HvtUCB", "HeavyOFUL")
@pytest.mark.parametrize(
    ("policy", "slow"),
    [(rb.HvtUCB(d=3, **TOLD, scale=0.01), SlowHvt), (rb.HeavyOFUL(d=3, **TOLD, scale=0.01), SlowHeavy)],
)
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_huber_regression(policy, slow, scale):
    policy = dataclasses.replace(policy, scale=scale)
    run, model = Run(policy), slow(3, 0.5, 1.5, 2.0, 1000, 0.05, scale)
    X, Y = data(4, 90, 3)
    for i in range(90):
        run.tell(0, X[i], Y[i])
        model.update(X[i], Y[i])
        assert run.s.theta[0] == pytest.approx(model.theta, rel=1e-8, abs=1e-10), i
        assert sum(run.at(0, X[3])) == pytest.approx(model.index(X[3]), rel=1e-8)


@pytest.mark.independent("LinUCB", "LinTS", "LinStudentTS", "LinEpsilonGreedy")
@pytest.mark.parametrize(
    ("policy", "factor"),
    [(rb.LinUCB(d=3, alpha=0.5), 0.5), (rb.LinTS(d=3, v=2.0), 2.0), (rb.LinEpsilonGreedy(d=3), 0.0)]
    + [(rb.LinStudentTS(d=3), None)],
    ids=repr,
)
def test_ridge_regression(policy, factor):
    run = Run(policy)
    X, Y = data(5, 50, 3)
    for x, y in zip(X, Y, strict=True):
        run.tell(0, x, y)
    theta = np.linalg.solve(np.eye(3) + X.T @ X, X.T @ Y)
    if factor is None:
        factor = math.sqrt((((Y - X @ theta) ** 2).sum() + theta @ theta) / 50)
    width = factor * math.sqrt(X[0] @ np.linalg.inv(np.eye(3) + X.T @ X) @ X[0])
    assert run.at(0, X[0]) == pytest.approx([X[0] @ theta, width], rel=1e-9)


# --- decisions in flight -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [policy for policy in EVERY if policy.label not in ("Hvt-UCB", "HEAVY-OFUL")], ids=repr
)
def test_an_open_decision_counts_in_the_precision_and_not_in_the_mean(policy):
    policy, rng = for_columns(policy, 3), np.random.default_rng(6)
    run, prior = Run(policy, 2), np.diag(policy.prior())
    learned, open_ones = [[], []], [[], []]
    for i in range(120):
        x, arm = np.append(1.0, rng.integers(0, 3, 2)), int(rng.integers(2))
        run.take(arm, x)
        open_ones[arm].append(x)
        while open_ones[arm] and rng.random() < 0.6:
            x = open_ones[arm].pop(int(rng.integers(len(open_ones[arm]))))
            run.tell(arm, x, float(rng.standard_normal()), 1.0)
            learned[arm].append(x)
        at = np.array([1.0, 2.0, 0.5])
        mean = run.at(0, at)[0]  # moves the newest decision to Q
        for a in (0, 1):
            own, both = np.array(learned[a]).reshape(-1, 3), np.array(learned[a] + open_ones[a]).reshape(-1, 3)
            assert symmetric(run.s.P[a], 3) == pytest.approx(np.linalg.inv(prior + own.T @ own), rel=1e-8, abs=1e-10)
            found = run.s.Q[a] if run.s.waiting[a] else run.s.P[a]
            assert symmetric(found, 3) == pytest.approx(np.linalg.inv(prior + both.T @ both), rel=1e-8, abs=1e-10)
            assert run.s.waiting[a] == len(open_ones[a])
        if i % 10 == 9 and len(learned[0]) > 2 and policy.draws:
            width = run.at(0, at)[1]
            run.take(0, at)
            assert run.at(0, at)[0] == mean
            assert run.at(0, at)[1] < width
            open_ones[0].append(at)


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_an_arm_that_never_answers_does_not_get_all_decisions(policy):
    bandit = rb.Bandit(["silent", "a", "b"], policy, seed=0, compile="never")
    for _ in range(120):
        decision = bandit.decide()
        if decision.arm != "silent":
            bandit.reward(decision, float(np.sin(len(bandit.open))))
    assert sum(decision.arm == "silent" for decision in bandit.open) < 60


# --- units, arms, checks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [rb.AdaClipTS(), rb.AdaClipUCB(), rb.LinUCB()], ids=repr)
def test_units_do_not_matter(policy):
    chosen = []
    for scale, shift in ((1.0, 0.0), (32.0, 160.0), (0.03125, -8.0)):  # powers of 2, so that rounding is the same
        run, rng = Run(for_columns(policy, 3), 3), np.random.default_rng(7)
        arms = []
        for _ in range(150):
            x = np.append(1.0, rng.integers(0, 5, 2) / 4.0)
            arm = run.ask(x)
            reward = (arm * x[1] - x[2] + 4.0 * math.floor(rng.standard_t(1.5))) / 64
            run.tell(arm, x, scale * reward + shift)
            arms.append(arm)
        chosen.append(arms)
    assert (chosen[0] == chosen[1] == chosen[2]) == (not isinstance(policy, rb.LinUCB))  # the negative control


def test_an_arm_that_is_added_begins_at_the_prior():
    bandit = rb.Bandit(["a", "b"], rb.AdaClipTS(), seed=0, compile="never")
    for i in range(30):
        bandit.update("ab"[i % 2], float(i % 5))
    bandit.add_arm("c")
    state = bandit._engine.state
    assert state.P.shape == state.Q.shape == (3, 1)
    assert state.P[2, 0] == pytest.approx(1e3)
    assert state.waiting.tolist()[3] in (-1, 0, 1, 2)
    assert bandit.select() == "c"


def test_shared_coefficients_use_one_model():
    policy = for_columns(rb.AdaClipTS(), 2, shared=True)
    run = Run(policy, 3)
    assert run.s.P.shape == (1, 3)
    assert run.s.x.shape == (6,)
    rng = np.random.default_rng(8)
    for _ in range(60):
        x = np.column_stack([np.ones(3), rng.standard_normal(3)])
        arm = run.ask(x.reshape(-1))
        run.tell(arm, x.reshape(-1), 3.0 * x[arm, 1])
    best = np.array([[1.0, -1.0], [1.0, 2.0], [1.0, 0.0]])
    assert run.ask(best.reshape(-1)) == 1
    assert run.at(1, best.reshape(-1))[0] == pytest.approx(6.0, abs=0.5)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: rb.AdaClipTS(d=0), "d"),
        (lambda: rb.AdaClipTS(d=66), "d"),
        (lambda: rb.LinUCB(alpha=-1.0), "alpha"),
        (lambda: rb.LinTS(v=0.0), "v"),
        (lambda: rb.LinEpsilonGreedy(epsilon=1.5), "epsilon"),
        (lambda: rb.HvtUCB(S=0.0), "S"),
        (lambda: rb.HeavyOFUL(nu=-1.0), "nu"),
        (lambda: for_columns(rb.LinUCB(d=3), 4), "d"),
        (lambda: for_columns(rb.LinUCB(shared=True), 4), "shared"),
    ],
)
def test_wrong_parameters_are_refused(call, parameter):
    with pytest.raises(rb.errors.InvalidInput) as caught:
        call()
    assert caught.value.parameter == parameter


def test_a_restart_would_forget_contexts():
    with raises(NotApplicable):
        for_columns(rb.Restarting(rb.AdaClipTS()), 3)
    assert for_columns(rb.Floor(rb.AdaClipTS()), 3).of.d == 3


class Slopes(rb.Policy):
    """A policy of a user: stochastic gradient descent per arm, each arm in turn while t is small."""

    d: int = 1
    contextual = True

    def init(self, arms, horizon):
        return SlopesState(np.zeros(self.d), np.zeros((arms, self.d)), np.zeros(1))

    @staticmethod
    def select(p, s, x):
        if s.t[0] < 30.0:
            return int(s.t[0]) % s.theta.shape[0]
        best = 0
        for arm in range(s.theta.shape[0]):
            if dot(s.theta[arm], x) > dot(s.theta[best], x):
                best = arm
        return best

    @staticmethod
    def update(p, s, arm, x, reward):
        s.t[0] += 1.0
        error = reward - dot(s.theta[arm], x)
        for i in range(x.shape[0]):
            s.theta[arm, i] += 0.1 * error * x[i]


class SlopesState(NamedTuple):
    x: np.ndarray
    theta: np.ndarray
    t: np.ndarray


def test_a_policy_of_ones_own_gets_x():
    problem = rb.problems.linear(2, 3, coefficients=[[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    result = rb.simulate([Slopes(), rb.UCB1()], problem, 500, 4, seed=0)
    own, blind = result.regret[:, :, -1].mean(axis=1)
    assert own < 0.3 * blind
    bandit = rb.Bandit(["a", "b"], Slopes(), features={"f": rb.Category(["u", "v"])}, compile="never")
    for i in range(100):
        context = {"f": "uv"[i % 2]}
        arm = bandit.select(context=context)
        bandit.update(arm, float((arm == "a") == (i % 2 == 0)), context=context)
    assert [bandit.select(context={"f": f}) for f in "uv"] == ["a", "b"]
