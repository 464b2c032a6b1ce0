"""Simulation: the random streams, regret at checkpoints, interruption, and rejected input."""

import math
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.own_policies import STATES, Exp3, Greedy, Recorder, tape
from robandit.errors import InvalidInput, InvalidReward
from robandit.laws import Constant, Gaussian, Pareto

# `robandit.simulate` is the function; the module of that name is found here.
module = import_module("robandit.simulate.simulation")
MASK = 2**64 - 1


def losses(*means, tail=1.8):
    return rb.problems.negated_pareto(means=list(means or (-1.0, -1.5, -2.25)), tail=tail)


def same(a, b):
    return a.regret.tobytes() == b.regret.tobytes() and a.pulls.tobytes() == b.pulls.tobytes()


def record(policy, problem, horizon, replications, seed, company=()):
    """The tapes of a recorder, one per replication."""
    STATES.clear()
    result = rb.simulate([*company, policy], problem, horizon, replications, seed, threads=1)
    tapes = [tape(state) for state in STATES if state.count[0] > 0]
    assert len(tapes) == replications
    return tapes, result


# --- random streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [rb.AdaRUCB(bonus="tight"), Greedy()], ids=repr)
def test_any_number_of_threads_gives_the_same_bytes(policy):
    results = [rb.simulate(policy, losses(), 3001, 7, seed=4, threads=n) for n in (1, 2, 5)]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    other = rb.simulate(policy, losses(), 3001, 7, seed=5, threads=2)
    assert not np.array_equal(other.pulls, results[0].pulls)


def xoshiro(words):
    """xoshiro256++ from its authors' description, on Python's integers."""
    s = [int(word) for word in words]

    def rotated(x, k):
        return (x << k | x >> 64 - k) & MASK

    while True:
        yield (rotated(s[0] + s[3] & MASK, 23) + s[0]) & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)


def expected_losses(seed, replication, arm, arms, count, scale, tail):
    """Rewards of -Pareto from the documented stream: words of the spawned seed, policy first, then arm by arm."""
    spawned = np.random.SeedSequence(seed).spawn(replication + 1)[replication]
    words = spawned.generate_state(4 * (arms + 1), np.uint64).reshape(arms + 1, 4)[arm + 1]
    source = xoshiro(words)
    return [-scale * math.exp(-math.log(((next(source) >> 11) + 1) * 2.0**-53) / tail) for _ in range(count)]


def test_rewards_are_those_of_the_documented_streams():
    tail, problem = 1.8, losses(tail=1.8)
    tapes, _ = record(Recorder(), problem, 60, 3, seed=99)
    for replication, seen in enumerate(tapes):
        for arm, rewards in enumerate(seen):
            scale = -problem.means[arm] * (tail - 1) / tail
            assert len(rewards) == 20
            np.testing.assert_allclose(
                rewards, expected_losses(99, replication, arm, 3, 20, scale, tail), rtol=1e-13, atol=0
            )


def test_random_numbers_are_common_to_all_policies():
    problem = losses(-1.0, -1.5, -2.25, -3.0)
    plain, _ = record(Recorder(), problem, 80, 4, seed=7)
    for other, company in [
        (Recorder(stride=3), ()),
        (Recorder(random=1), ()),
        (Recorder(stride=2), (rb.UCB1(), Greedy())),
        (Recorder(random=2), (Exp3(),)),
    ]:
        tapes, _ = record(other, problem, 70, 5, seed=7, company=company)
        for a, b in zip(plain, tapes[:4], strict=True):
            for mine, its in zip(a, b, strict=True):
                both = min(len(mine), len(its))
                assert mine[:both].tobytes() == its[:both].tobytes()
    random_tapes, _ = record(Recorder(random=1), problem, 80, 4, seed=7)
    orders = {tuple(len(arm) for arm in seen) for seen in random_tapes}
    assert len(orders) > 1, "the recorder was to be random"
    assert not np.array_equal(plain[0][0][:5], plain[1][0][:5]), "replications must differ"
    assert not np.array_equal(plain[0][0][:5] / problem.means[0], plain[0][1][:5] / problem.means[1]), (
        "arms must differ"
    )


def test_a_policys_own_stream_is_the_first_row():
    words = np.random.SeedSequence(7, spawn_key=(1,)).generate_state(4, np.uint64)
    source = xoshiro(words)
    expected = [min(int(((next(source) >> 11) + 1) * 2.0**-53 * 3), 2) for _ in range(50)]
    STATES.clear()
    rb.simulate(Recorder(random=1), losses(), 50, 2, seed=7, threads=1)
    assert STATES[-1].seen[:50, 0].tolist() == expected


def test_company_and_more_replications_change_nothing():
    problem = losses()
    alone = rb.simulate(Greedy(), problem, 500, 3, seed=2)
    together = rb.simulate([rb.UCB1(), Greedy(), Exp3()], problem, 500, 9, seed=2)
    assert together.pulls[1, :3].tobytes() == alone.pulls[0].tobytes()
    assert together.regret[1, :3].tobytes() == alone.regret[0].tobytes()


def test_a_seed_is_drawn_and_kept():
    first, second = (rb.simulate(Greedy(), losses(), 50, 2) for _ in range(2))
    assert first.seed != second.seed
    assert same(first, rb.simulate(Greedy(), losses(), 50, 2, seed=first.seed))


# --- regret and checkpoints -----------------------------------------------------------------------------------------


def test_regret_of_known_pulls_at_chosen_times():
    problem = losses()
    result = rb.simulate(Recorder(), problem, 101, 2, seed=0, checkpoints=[50, 1, 7, 7, 2])
    assert result.checkpoints.tolist() == [1, 2, 7, 50, 101]
    for j, t in enumerate(result.checkpoints):
        pulls = [len(range(arm, t, 3)) for arm in range(3)]
        np.testing.assert_allclose(result.regret[0, :, j], np.dot(pulls, [0.0, 0.5, 1.25]), rtol=1e-14)
    assert result.pulls[0].tolist() == [[34, 34, 33]] * 2


@pytest.mark.parametrize("policy", [rb.UCB1(), rb.AdaRUCB(bonus=0.5)], ids=repr)
def test_regret_at_a_checkpoint_is_that_of_a_shorter_run(policy):
    problem = losses()
    marks = [1, 2, 3, 64, 333, 1500]
    result = rb.simulate(policy, problem, 2001, 3, seed=6, checkpoints=marks)
    for j, t in enumerate([*marks, 2001]):
        short = rb.simulate(policy, problem, t, 3, seed=6)
        assert (short.pulls.sum(axis=2) == t).all()
        np.testing.assert_allclose(result.regret[0, :, j], short.pulls[0] @ problem.gaps, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 3, 51, 997, 100_000])
def test_default_checkpoints_are_spaced_evenly_in_the_logarithm(horizon):
    result = rb.simulate(Recorder(), losses(), horizon, 1, seed=0)
    marks = result.checkpoints
    assert marks[0] == 1
    assert marks[-1] == horizon
    assert (np.diff(marks) > 0).all()
    assert len(marks) <= 51
    large = marks[marks > 200]
    if len(large) > 2:
        ratios = large[1:] / large[:-1]
        assert ratios.max() / ratios.min() < 1.01
    assert result.regret.shape == (1, 1, len(marks))


# --- growing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 2, 3, 16, 1000])
def test_a_growing_state_loses_nothing_wherever_it_fills(chunk, monkeypatch):
    """With chunks of 1, 2 and 16 the state is full just when a chunk ends."""
    monkeypatch.setattr(module, "CHUNK", chunk)
    tapes, result = record(Recorder(), losses(), 100, 2, seed=3)
    assert [len(arm) for arm in tapes[0]] == [34, 33, 33]
    assert result.pulls[0, 0].tolist() == [34, 33, 33]


def test_ada_r_ucb_does_not_depend_on_chunks(monkeypatch):
    problem = losses(-1.0, -1.1)
    whole = rb.simulate(rb.AdaRUCB(bonus="tight"), problem, 4000, 2, seed=3)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert same(whole, rb.simulate(rb.AdaRUCB(bonus="tight"), problem, 4000, 2, seed=3))


# --- live and simulated ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [rb.AdaRUCB(c=1.0, bonus=0.3), rb.AdaRUCB(), rb.UCB1(), Greedy(), Exp3()], ids=repr)
def test_the_live_bandit_agrees_pull_by_pull(policy):
    problem, horizon = losses(-1.0, -1.5, -2.25), 901
    tapes, _ = record(Recorder(), problem, 3 * horizon, 2, seed=8)
    result = rb.simulate(policy, problem, horizon, 2, seed=8, checkpoints=range(1, horizon + 1))
    for replication, rewards in enumerate(tapes):
        bandit = rb.Bandit(range(3), policy, seed=0)
        if hasattr(bandit._engine.state, "rng"):
            words = np.random.SeedSequence(8, spawn_key=(replication,)).generate_state(4, np.uint64)
            bandit._engine.state.rng[:] = words
        pulls, regret = [0, 0, 0], []
        for _ in range(horizon):
            arm = bandit.select()
            bandit.update(arm, rewards[arm][pulls[arm]])
            pulls[arm] += 1
            regret.append(float(np.dot(pulls, problem.gaps)))
        np.testing.assert_allclose(result.regret[0, replication], regret, rtol=1e-12, atol=1e-12)
        assert result.pulls[0, replication].tolist() == pulls


# --- progress, and parts of a run -----------------------------------------------------------------------------------


def test_a_progress_bar_changes_nothing(capsys, monkeypatch):
    result = rb.simulate([rb.UCB1(), Greedy(eps=0.1)], losses(), 300, 12, seed=5)
    rb.simulate(result.policies, result.problem, 300, 12, seed=5)
    assert capsys.readouterr().err == "", "not on a terminal"
    monkeypatch.setenv("FORCE_COLOR", "1")
    again = rb.simulate(result.policies, result.problem, 300, 12, seed=5, progress=True)
    assert same(result, again)
    assert "simulating" in capsys.readouterr().err


def test_later_replications_are_those_of_the_whole_run(tmp_path):
    policies, problem = [rb.UCB1(), rb.EpsilonGreedy()], rb.problems.gaussian(means=[0.0, 0.5])
    whole = rb.simulate(policies, problem, 200, 7, seed=3)
    part = rb.simulate(policies, problem, 200, 3, seed=3, first=4)
    assert part.first == 4
    assert (part.regret == whole.regret[:, 4:]).all()
    assert (part.pulls == whole.pulls[:, 4:]).all()
    part.to_parquet(tmp_path / "part.parquet")
    assert rb.Result.from_parquet(tmp_path / "part.parquet").first == 4
    with raises(InvalidInput, parameter="first", rule="an integer >= 0"):
        rb.simulate(policies, problem, 200, 3, first=-1)


# --- interruption and rejected input --------------------------------------------------------------------------------------

LONG_RUN = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
import robandit as rb
problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.25], tail=1.8)
rb.simulate(rb.UCB1(), problem, 10, 1, seed=0)
print("go", flush=True)
try:
    rb.simulate(rb.UCB1(), problem, 10**10, 50, seed=0, threads=3)
except KeyboardInterrupt:
    print([t.name for t in threading.enumerate()], flush=True)
    raise
"""


def test_ctrl_c_ends_at_once_and_leaves_no_threads():
    command = [sys.executable, "-W", "error", "-c", LONG_RUN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "go\n"
            time.sleep(0.7)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert out == "['MainThread']\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0


def test_an_interruption_while_jobs_are_handed_out_stops_them(monkeypatch):
    class Interrupted(module.ThreadPoolExecutor):
        def submit(self, job):
            if self._work_queue.qsize() >= 1:
                raise KeyboardInterrupt
            return super().submit(job)

    monkeypatch.setattr(module, "ThreadPoolExecutor", Interrupted)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rb.simulate(rb.UCB1(), losses(), 10**9, 4, seed=0, threads=1)  # a full run would take half a minute
    assert time.monotonic() - start < 20
    assert not [t for t in threading.enumerate() if t.name.startswith("robandit")]


def test_another_thread_can_end_it():
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(CancelledError, match="stopped before the end"):
        rb.simulate(rb.UCB1(), losses(), 10**10, 2, seed=0, threads=2, stop=stop)
    assert not [t for t in threading.enumerate() if t.name.startswith("robandit")]


def test_simulations_may_share_threads():
    alone = [rb.simulate(rb.UCB1(), losses(), 500, 6, seed=seed) for seed in range(3)]
    with ThreadPoolExecutor(2, "shared") as pool, ThreadPoolExecutor(3) as callers:
        both = list(callers.map(lambda seed: rb.simulate(rb.UCB1(), losses(), 500, 6, seed=seed, pool=pool), range(3)))
        with pytest.raises(InvalidReward):
            rb.simulate(rb.UCB1(), rb.Problem([Gaussian(0.0, 1.0), Constant(-1e200)]), 10, 9, seed=0, pool=pool)
        again = rb.simulate(rb.UCB1(), losses(), 500, 6, seed=0, pool=pool)  # a failure leaves the pool as it was
    assert all(same(a, b) for a, b in zip([*alone, alone[0]], [*both, again], strict=True))


def test_costs_are_played_as_negated_rewards_to_the_last_bit():
    laws = [rb.laws.Pareto(1.8), rb.laws.Pareto(1.8, 1.5), rb.laws.LogNormal(0.0, 1.5)]
    costs, rewards = rb.Problem(laws, minimize=True), rb.Problem([-law for law in laws])
    policies = [rb.UCB1(), rb.EpsilonGreedy(), rb.RobustMOSS().informed_by(costs)]
    played, expected, wrong = (
        rb.simulate(policies, problem, 500, 3, seed=5) for problem in (costs, rewards, rb.Problem(laws))
    )
    assert played.regret.tobytes() == expected.regret.tobytes()
    assert played.pulls.tobytes() == expected.pulls.tobytes()
    assert played.policies == expected.policies
    assert played.regret.tobytes() != wrong.regret.tobytes(), "the negative control"


def test_a_cost_that_cannot_be_squared_keeps_its_sign():
    problem = rb.Problem([rb.laws.Constant(1e200), rb.laws.Constant(2.0)], minimize=True)
    with pytest.raises(InvalidReward, match=r"Constant\(value=1e\+200\) \(arm 0\) drew 1e\+200"):
        rb.simulate(rb.UCB1(), problem, 10, 1, seed=0)


def test_a_reward_that_cannot_be_squared_names_law_and_arm():
    with pytest.raises(InvalidReward, match=r"Constant.*1e\+200.*arm 1.*drew -?1e\+200.*1e\+150"):
        rb.simulate(rb.UCB1(), rb.Problem([Gaussian(0.0, 1.0), Constant(-1e200)]), 10, 2, seed=0)
    with pytest.raises(InvalidReward, match=r"Pareto.*arm 0"):
        rb.simulate(rb.UCB1(), rb.Problem([Pareto(1.01, 1e148), Gaussian(0.0, 1.0)]), 100_000, 2, seed=0)
    with pytest.raises(
        InvalidReward, match=r"Constant.*arm 0.*drew 1e-140, which is smaller than 1e-130.*scale the problem up"
    ):
        rb.simulate(rb.UCB1(), rb.Problem([Constant(1e-140), Constant(0.0)]), 10, 2, seed=0)
    fits = rb.simulate(rb.UCB1(), rb.Problem([Constant(-1e150), Constant(1e150)]), 10, 2, seed=0)
    assert (fits.pulls.sum(axis=2) == 10).all()
    assert not [t for t in threading.enumerate() if t.name.startswith("robandit")]


BAD = {
    "horizon": [0, -1, 1.5, True, "x", None, 10**30],
    "replications": [0, 2.0, 10**400],
    "seed": [-1, 1.0, "1"],
    "threads": [0, 1.5],
    "checkpoints": [7, "", {}],
    "checkpoints[0]": [[0], [2.5]],
    "checkpoints[1]": [[5, 51]],
    "policies": [[], [rb.UCB1(), Greedy(), rb.UCB1(scale=1)]],
    "policies[0]": [rb.UCB1, ["UCB1"], "UCB1", None],
    "policies[1]": [[rb.UCB1(), rb.AdaRUCB]],
    "problem": [[Gaussian(0.0, 1.0)] * 2, None],
}


@cases(("parameter", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_input_is_rejected_by_name(parameter, value):
    given = {"policies": rb.UCB1(), "problem": losses(), "horizon": 50, "replications": 2, "seed": 1}
    with raises(InvalidInput, parameter=parameter):
        rb.simulate(**given | {parameter.partition("[")[0]: value})


def test_a_class_for_a_policy_and_a_time_after_the_horizon_have_a_hint():
    for policies, checkpoints, hint in (
        (rb.UCB1, None, r"did you mean UCB1\(\)"),
        (rb.UCB1(), [51], "times lie between 1 and the horizon"),
    ):
        with pytest.raises(InvalidInput, match=hint):
            rb.simulate(policies, losses(), 50, 2, checkpoints=checkpoints)


def test_numpy_numbers_are_numbers(capsys):
    given = [np.int64(50), np.int32(2), np.uint8(1)]
    result = rb.simulate(rb.UCB1(), losses(), *given, threads=np.int64(2), checkpoints=np.array([3, 9]))
    assert same(result, rb.simulate([rb.UCB1()], losses(), 50, 2, 1, checkpoints=[3, 9]))
    assert "compiling" not in capsys.readouterr().err, "the same kernel serves both"


def test_a_failing_policy_stops_the_simulation():
    class Stuck(Recorder):
        def grow(self, state):
            raise RuntimeError("no more room")

    with pytest.raises(RuntimeError, match="no more room"):
        rb.simulate(Stuck(), losses(), 50, 20, seed=0, threads=2)
    assert not [t for t in threading.enumerate() if t.name.startswith("robandit")]


def test_checkpoints_may_come_from_a_generator():
    problem = rb.problems.gaussian(means=[0.0, 1.0])
    result = rb.simulate(rb.UCB1(), problem, 1000, 1, seed=0, checkpoints=(t for t in (10, 100)))
    assert result.checkpoints.tolist() == [10, 100, 1000]
