"""When a bandit compiles its hooks: beside the program, before it is used, or never."""

import copy
import math
import os
import pickle
import subprocess
import sys
import time
import warnings
import weakref
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.invalid import raises
from helpers.live_bandits import next_decisions
from helpers.own_policies import Greedy
from helpers.running import SOURCE
from robandit.errors import BrokenState, CompilationWarning, InvalidInput, KernelError
from robandit.kernel import background, cache
from robandit.live import engine

pytestmark = pytest.mark.usefixtures("compiles_beside")

WAYS = ("background", "now", "never")
PATIENCE = 120.0  # seconds; loose, since the machine may be busy


def is_interpreted(entry):
    return getattr(entry, "__qualname__", "").startswith("_with_fallback")


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def script(text, folder, *args):
    """Run a program in a new process with a cache folder; return its output. It must succeed and print no messages."""
    environment = os.environ | {"ROBANDIT_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", text, *args]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


# --- the parameter ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["later", True, None, ["now"]], ids=repr)
def test_other_values_are_rejected(value, tmp_path):
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    bandit.save(tmp_path / "bandit")
    calls = [
        lambda: rb.Bandit(["a", "b"], rb.UCB1(), compile=value),
        lambda: rb.Bandit.from_bytes(bandit.to_bytes(), compile=value),
        lambda: rb.Bandit.load(tmp_path / "bandit", compile=value),
    ]
    for call in calls:
        with raises(InvalidInput, parameter="compile"):
            call()


@pytest.mark.parametrize("policy", [rb.UCB1(), rb.EpsilonGreedy(), rb.HTINF(eps=0.5, u=1.0)], ids=lambda p: p.label)
def test_all_ways_give_the_same_decisions_and_bytes(policy, tmp_path):
    bandits = [rb.Bandit(list("abc"), policy, 1, compile=way) for way in WAYS]
    decisions = [next_decisions(bandit) for bandit in bandits]
    assert decisions[0] == decisions[1] == decisions[2]
    data = [bandit.to_bytes() for bandit in bandits]
    assert data[0] == data[1] == data[2]
    bandits[0].save(tmp_path / "bandit")
    again = [rb.Bandit.load(tmp_path / "bandit", compile=way) for way in WAYS]
    again += [rb.Bandit.from_bytes(data[0], compile=way) for way in WAYS]
    decisions = [next_decisions(bandit) for bandit in again]
    assert all(each == decisions[0] for each in decisions)


def test_a_copy_has_the_default():
    bandit = rb.Bandit(["a", "b"], rb.UCB1(), compile="never")
    for other in (copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        assert other._engine._compile == "background"
        assert other.to_bytes() == bandit.to_bytes()


# --- without compilation ----------------------------------------------------------------------------------------------

NEVER = """
import sys
import robandit as rb
bandit = rb.Bandit(list("abc"), rb.EpsilonGreedy(), 0, compile="never")
for step in range(300):  # the drift detector takes groups of 64
    bandit.update(bandit.select(), float(step % 5))
for step in range(20):
    decision = bandit.decide()
    bandit.reward(decision, 1.0) if step % 2 else bandit.expire(decision)
bandit.estimates()
bandit.to_bytes()
print("numba" in sys.modules)
"""


def test_never_means_that_numba_is_not_imported(tmp_path):
    assert script(NEVER, tmp_path) == "False"
    assert list(tmp_path.iterdir()) == []


FIRST = """
import sys, threading
import robandit as rb
imported = []
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            imported.append(threading.current_thread() is threading.main_thread())
sys.meta_path.insert(0, Finder())
bandit = rb.Bandit(list("abc"), seed=0)
for step in range(20):
    bandit.update(bandit.select(), float(step % 5))
    bandit.reward(bandit.decide(), 1.0)
bandit.estimates()
print(any(imported))
"""


def test_the_first_decisions_do_not_import_numba(tmp_path):
    """Not in the thread that decides, which would take half a second."""
    assert script(FIRST, tmp_path) == "False"


# --- in the background ------------------------------------------------------------------------------------------------


class Slope(Greedy):
    """A policy that no other test compiles."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += 1.25 * reward
        s.arms[arm, 1] += 1.0


def step(bandit, reward):
    """Use every entry but that of lost rewards; return what was decided."""
    decision = bandit.decide()
    bandit.reward(decision, reward)
    arm = bandit.select()
    bandit.update(arm, reward)
    return decision.arm, decision.propensity, arm


def test_compiled_entries_take_over(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path))
    bandit = rb.Bandit(list("abc"), Slope(), 0)
    engine, rewards, decided = bandit._engine, [], []
    assert is_interpreted(engine.tell_entry)

    def all_compiled():
        rewards.append(math.sin(len(rewards)))
        decided.append(step(bandit, rewards[-1]))
        return not any(map(is_interpreted, [engine.ask_entry, engine.tell_entry, *engine._entries.values()]))

    wait_until(all_compiled)
    assert set(engine._entries) == {"ask", "tell", "issue", "chance_of"}
    all_compiled()
    assert capfd.readouterr().err == ""  # no "compiling ..., first run only"
    whole = rb.Bandit(list("abc"), Slope(), 0, compile="now")
    assert [step(whole, reward) for reward in rewards] == decided
    assert repr(whole.estimates()) == repr(bandit.estimates())


def test_code_that_the_process_has_is_used_at_once():
    rb.Bandit(["a", "b"], rb.UCB1(), compile="now")
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    assert not is_interpreted(bandit._engine.ask_entry)
    assert not is_interpreted(bandit._engine.tell_entry)
    assert is_interpreted(rb.Bandit(["a", "b"], rb.UCB1(), compile="never")._engine.ask_entry)


@pytest.mark.parametrize("way", WAYS)
def test_estimates_are_compiled_only_if_they_are_slow(way, monkeypatch):
    bandit = rb.Bandit(["a", "b"], rb.UCB1(), compile=way)
    bandit.update("a", 1.0)
    monkeypatch.setattr(engine, "LONG", math.inf)
    quick = bandit.estimates()
    assert not bandit._engine._slow
    monkeypatch.setattr(engine, "LONG", 0.0)
    assert repr(bandit.estimates()) == repr(quick)
    wait_until(lambda: background._thread is None)
    assert is_interpreted(bandit._engine._entries["describe"]) == (way == "never")
    assert repr(bandit.estimates()) == repr(quick)


class Kept(Greedy):
    """Another policy that no other test compiles."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += 2.5 * reward
        s.arms[arm, 1] += 1.0


class Dropped(Greedy):
    """A third one."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += 3.5 * reward
        s.arms[arm, 1] += 1.0


def test_a_dropped_bandit_is_collected_and_not_compiled(monkeypatch):
    labels = []
    do = background._do
    monkeypatch.setattr(background, "_do", lambda job: labels.append(job.label) or do(job))
    with cache.lock:  # the background thread waits for it
        kept = rb.Bandit(["a", "b"], Kept(), 0)
        dropped = rb.Bandit(["a", "b"], Dropped(), 0)
        dropped.update(dropped.select(), 1.0)
        engine = weakref.ref(dropped._engine)
        del dropped
        assert engine() is None  # without a garbage collection
    wait_until(lambda: background._thread is None)
    assert set(labels) == {"Kept, live"}
    assert not is_interpreted(kept._engine.tell_entry)


class Allocating(Greedy):
    """Its hooks run, but cannot be compiled."""

    @staticmethod
    def select(p, s):
        return int(np.argmax(list(s.arms[:, 1] == 0.0)))


def test_hooks_that_cannot_be_compiled_go_on_with_one_warning():
    bandit = rb.Bandit(["a", "b"], Allocating(), 0)
    bandit.update(bandit.select(), 1.0)
    wait_until(lambda: background._thread is None)
    with pytest.warns(CompilationWarning, match=r'^Allocating, live cannot be compiled: .*compile="now"') as caught:
        assert bandit.select() == "b"
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    bandit.update("b", 1.0)
    assert bandit.decide().arm == "a"  # warnings are errors in this test run: there is no second one
    bandit.expire(*bandit.open)
    wait_until(lambda: background._thread is None)
    assert bandit.select() == "a"
    with pytest.raises(KernelError, match="cannot be compiled"):
        rb.Bandit(["a", "b"], Allocating(), compile="now")
    with pytest.raises(KernelError, match="cannot be compiled"):
        rb.simulate(Allocating(), rb.problems.bernoulli(means=[0.2, 0.8]), 10, 1, progress=False)


def test_a_warning_that_is_an_error_changes_nothing():
    bandit = rb.Bandit(["a", "b"], Allocating(), 0)
    bandit.update("a", 1.0)
    wait_until(lambda: background._thread is None)
    before = bandit.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CompilationWarning):
            bandit.select()
    assert bandit.to_bytes() == before
    assert bandit.select() == "b"


# --- hooks that raise errors when they run as plain Python ---------------------------------------------------------------


class Logarithms(Greedy):
    """It takes the logarithm of 0, which is -inf in compiled code."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 1] += 1.0
        s.arms[arm, 0] = max(math.log(abs(reward)), -5.0)


def test_an_error_of_plain_python_leads_to_compiled_code():
    bandit = rb.Bandit(["a", "b"], Logarithms(), 0)
    compiled = rb.Bandit(["a", "b"], Logarithms(), 0, compile="now")
    for each in (bandit, compiled):
        for reward in (1.0, 0.0, 2.0):
            each.update("a", reward)
    assert not is_interpreted(bandit._engine.tell_entry)
    assert bandit.to_bytes() == compiled.to_bytes()


def test_an_error_of_plain_python_without_compilation():
    bandit = rb.Bandit(["a", "b"], Logarithms(), 0, compile="never")
    decision = bandit.decide()
    before = bandit.to_bytes()
    for call in (lambda: bandit.update("a", 0.0), lambda: bandit.reward(decision, 0.0)):
        with pytest.raises(KernelError, match=r'update\(\) of Logarithms.* raised ValueError: .*compile="background"'):
            call()
        assert bandit.to_bytes() == before
    bandit.reward(decision, 1.0)
    assert bandit.open_count == 0


class Interrupted(Greedy):
    """As if the handler of a signal raised an error in the middle of a hook."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 1] += 1.0
        if reward < 0.0:
            raise TimeoutError


@pytest.mark.parametrize("way", ["background", "never"])
def test_errors_that_do_not_come_from_the_hook_are_passed_on(way):
    with cache.lock:
        bandit = rb.Bandit(["a", "b"], Interrupted(), 0, compile=way)
        before = bandit.to_bytes()
        with pytest.raises(TimeoutError):
            bandit.update("a", -1.0)
        assert bandit.to_bytes() == before


class OutOfRange(Greedy):
    """Its hook writes half of a pull, and then reads beyond an array."""

    @staticmethod
    def expire(p, s, arm, mark):
        s.arms[arm, 0] += 1.0
        s.arms[arm, 1] += s.arms[arm, 7]


@pytest.mark.parametrize("way", ["background", "never", "now"])
def test_after_an_index_out_of_range_a_bandit_refuses_to_go_on(way):
    bandit = rb.Bandit(["a", "b"], OutOfRange(), 0, compile=way)
    decision = bandit.decide()
    with pytest.raises(
        BrokenState, match=r"OutOfRange\(.*\) raised IndexError.* The state or the policy is broken"
    ) as first:
        bandit.expire(decision)
    assert bandit.open == (decision,)
    assert bandit.is_broken
    calls = [bandit.select, bandit.decide, bandit.to_bytes, bandit.counters, bandit.estimates]
    calls += [partial(bandit.update, "a", 1.0), partial(bandit.reward, decision, 1.0), partial(bandit.expire, decision)]
    for call in [*calls, partial(bandit.add_arm, "c")]:
        with pytest.raises(BrokenState) as later:
            call()
        assert str(later.value) == str(first.value)


class Reader(Greedy):
    """Each of its hooks reads beyond an array, if a parameter says so."""

    bad: str = "select"
    chance = None

    def params(self):
        hooks = ("select", "update", "take", "estimate")
        return ReaderParams(*(10**9 * (self.bad == hook) for hook in hooks))

    @staticmethod
    def select(p, s):
        return 0 if s.arms[p.select, 0] < 5.0 else 1

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += 1.0 + 0.0 * s.arms[p.update, 0]

    @staticmethod
    def take(p, s, arm):
        return s.arms[p.take, 0]

    @staticmethod
    def estimate(p, s, arm, out):
        out[0] = s.arms[p.estimate, 0]


class ReaderParams(NamedTuple):
    select: int
    update: int
    take: int
    estimate: int


@pytest.mark.parametrize("way", ["never", "now"])
def test_every_hook_is_checked(way):
    calls = {
        "select": [lambda bandit: bandit.select(), lambda bandit: bandit.decide()],
        "update": [lambda bandit: bandit.update("a", 1.0), lambda bandit: bandit.reward(bandit.decide(), 1.0)],
        "take": [lambda bandit: bandit.update("a", 1.0), lambda bandit: bandit.decide(arm="a")],
        "estimate": [lambda bandit: bandit.estimates()],
    }
    for hook, uses in calls.items():
        for use in uses:
            bandit = rb.Bandit(["a", "b"], Reader(bad=hook), 0, compile=way)
            with pytest.raises(BrokenState):
                use(bandit)
            with pytest.raises(BrokenState):
                bandit.to_bytes()


class Marked(Greedy):
    """Its marks are not numbers."""

    @staticmethod
    def take(p, s, arm):
        return s.arms[arm, 0] / s.arms[arm, 1]


@pytest.mark.parametrize("way", ["now", "never"])
def test_marks_must_be_finite(way):
    with pytest.raises(KernelError, match=r"take\(\) of Marked.* returned nan: a mark must be a finite number"):
        rb.Bandit(["a", "b"], Marked(), 0, compile=way).decide()


# --- processes --------------------------------------------------------------------------------------------------------

FORK = """
import os, sys, time, traceback
import robandit as rb

def decisions(bandit, count):
    chosen = []
    for step in range(count):
        chosen.append(bandit.select())
        bandit.update(chosen[-1], float((7 * step) % 5))
    return chosen

expected = decisions(rb.Bandit(list("abc"), rb.UCB1(), compile="never"), 200)
bandit = rb.Bandit(list("abc"), rb.UCB1())
before = decisions(bandit, 10)
time.sleep(float(sys.argv[1]))
child = os.fork()
try:
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    fresh = rb.Bandit(list("abc"), rb.UCB1())
    assert decisions(fresh, 200) == expected
    end = time.monotonic() + 100
    while type(fresh._engine.ask_entry).__name__ == "function":  # interpreted
        assert time.monotonic() < end, "nothing was compiled after the fork"
        time.sleep(0.01)
    assert decisions(bandit, 50) == decisions(again, 50)
    while type(bandit._engine.ask_entry).__name__ == "function":
        assert time.monotonic() < end, "the job of the parent was lost"
        time.sleep(0.01)
    code = 0
except BaseException:
    traceback.print_exc()
    code = 1
if child == 0:
    sys.stderr.flush()
    os._exit(code)
_, status = os.waitpid(child, 0)
print(code, status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("pause", amount(["0.3"], ["0", "0.3", "1"]))
def test_a_forked_child_goes_on(pause, tmp_path):
    """Both processes decide as they should, and both get compiled code, whatever was under way at the fork."""
    assert script(FORK, tmp_path, pause) == "0 0"


END = """
import sys, time
import robandit as rb
bandit = rb.Bandit(list("abc"), rb.UCB1(), compile=sys.argv[1])
bandit.update(bandit.select(), 1.0)
time.sleep(float(sys.argv[2]))
print(bandit.select(), time.time())
"""


def test_a_process_may_end_while_it_compiles(tmp_path):
    for pause in amount(("0.7",), ("0", "0.2", "0.7", "1.5")):
        arm, end = script(END, tmp_path, "background", pause).split()
        assert arm == "b"
        assert time.time() - float(end) < background.PATIENCE  # it does not wait for the compiler
    environment = os.environ | {"ROBANDIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    for _ in range(2):  # what the others left behind is complete, or not used
        command = [sys.executable, "-c", END, "now", "0"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("b ")
    assert done.stderr == ""  # everything came from the cache folder
    assert not [path for path in tmp_path.rglob("*") if "tmp" in path.name]


INTERRUPTED = """
import io, signal, sys
sys.stderr = io.StringIO()  # it prints what it compiles
import robandit as rb
rb.Bandit(["a", "b"], rb.UCB1(), compile="never").select()  # imports
class Interrupt(Exception): pass
def handler(*_): raise Interrupt
signal.signal(signal.SIGALRM, handler)
interrupts, bandit = 0, None
while bandit is None:
    try:
        if interrupts < 12:
            signal.setitimer(signal.ITIMER_REAL, 0.05 + 0.03 * (interrupts % 7))
        bandit = rb.Bandit(["a", "b"], rb.UCB1(), compile="now")
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        interrupts += 1
for _ in range(50):
    bandit.update(bandit.select(), 1.0)
print(interrupts > 0, bandit.counters()["rewards"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs setitimer")
def test_exceptions_of_a_signal_handler_do_not_interrupt_the_compiler(tmp_path):
    """The compilation goes on, and a later bandit uses it. Otherwise, an exception leaves Numba half imported, for example."""
    assert script(INTERRUPTED, tmp_path) == "True 50"
