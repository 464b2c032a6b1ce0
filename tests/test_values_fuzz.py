"""Odd values as arguments of every public function: each call returns, or raises an error of Robandit, and nothing else.

``FUZZ=75 pytest tests/test_values_fuzz.py`` tries 75 times as many calls, other ones each time.
"""

import os
import random
import signal
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import robandit as rb
from helpers.amount import amount
from helpers.fuzzing import MORE
from helpers.odd_values import MARK, ODD
from helpers.public_calls import MODULES, NOT_CALLED, RETURNED, Call, calls
from robandit.errors import AssumptionWarning, CompilationWarning, DriftWarning, RobanditError, formatted

resource = pytest.importorskip("resource", reason="memory limits are POSIX")
CALLS = int(os.environ.get("FUZZ_CALLS", 0)) or amount(2_000, 15_000) * MORE
SEED = 0 if MORE == 1 and not os.environ.get("FUZZ_SEED") else int(os.environ.get("FUZZ_SEED", random.randrange(2**32)))
SECONDS = 60
MEMORY = 6 << 30
LONGEST = 1200


CALLBACKS = ("progress", "log", "clock", "spooling", "finished", "track", "estimator")


class Hangs(BaseException):
    """A call that does not end."""


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """A folder for files that a call writes, less memory than the machine has, and an end to each call."""
    monkeypatch.chdir(tmp_path)

    def too_long(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, too_long)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError):  # systems without /proc
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.signal(signal.SIGALRM, before)


def spoiled(draw, call):
    """The arguments of a call, with one or two replaced by odd values, or an odd value put into one; and their names."""
    given = call.given()
    names = []
    for name in draw.sample(call.parameters, min(len(call.parameters), draw.choice((1, 1, 1, 2)))):
        odd = draw.choice(tuple(ODD))
        value, usual = ODD[odd](), given.get(name)
        if name in CALLBACKS and callable(value):
            continue  # an error in a function of the caller is the caller's
        if draw.random() < 0.3 and isinstance(usual, (list, tuple)) and usual:
            place = draw.randrange(len(usual))
            value = type(usual)([*usual[:place], value, *usual[place + 1 :]])
            odd = f"{odd} at {place}"
        elif draw.random() < 0.3 and isinstance(usual, dict) and usual:
            place = draw.choice(tuple(usual))
            value = usual | {place: value}
            odd = f"{odd} at {place!r}"
        if call.name == "simulate" and name == "horizon" and type(value) is int and value > 10**6:
            continue  # it would be played
        given[name] = value
        names.append(f"{name}={odd}")
    return given, ", ".join(names)


def failure(call, given):
    """What is wrong about a call, or ''."""
    signal.alarm(SECONDS)
    try:
        returned = call.target()(**given)
        if isinstance(returned, Iterator):
            for _ in zip(range(10), returned, strict=False):
                pass
        formatted(returned)
    except RobanditError as error:
        message = str(error)
        if len(message) > LONGEST or message.count(MARK) > 200:
            return f"a message of {len(message)} characters: {message[:200]!r}"
        if "\x1b" in message or message.count("\n") > 1:
            return f"control characters in {message[:200]!r}"
        try:
            message.encode()
        except UnicodeEncodeError:
            return f"a message that cannot be printed: {message[:200]!r}"
    except (AssumptionWarning, DriftWarning, CompilationWarning):
        pass
    except Hangs:
        return f"no answer after {SECONDS} s"
    except BaseException as error:
        return f"{type(error).__name__}: {formatted(error)}"
    finally:
        signal.alarm(0)
    return ""


def test_odd_arguments(limits):
    draw = random.Random(SEED)
    every = calls()
    often = [call for call in every if not call.slow]
    seldom = [call for call in every if call.slow]
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in range(CALLS):
            call = draw.choice(seldom if count % 100 == 99 else often)
            given, names = spoiled(draw, call)
            wrong = failure(call, given)
            if wrong:
                failures.append(f"{call.name}({names}): {wrong}")
    report = os.environ.get("FUZZ_REPORT")
    if report:
        with open(report, "a") as file:
            file.write(
                "".join(line + "\n" for line in [*failures, f"# {CALLS} calls, {len(failures)} failures, seed {SEED}"])
            )
    assert not failures, f"{len(failures)} of {CALLS} calls (seed {SEED}):\n" + "\n".join(failures[:50])


def public_callables():
    """The names of all public functions and classes, except exceptions."""
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not (isinstance(value, type) and issubclass(value, (BaseException, rb.Policy))):
                yield name, value


def test_every_public_function_is_called(limits):
    called = {call.name.partition(".")[0] for call in calls()}
    missing = {name for name, value in public_callables() if not isinstance(value, type)} - called - set(NOT_CALLED)
    assert not missing
    made = {name for name, value in public_callables() if isinstance(value, type)} - called
    assert made <= RETURNED


def test_most_calls_return_without_odd_values(limits):
    """Otherwise, odd values would never be reached. Some calls are refused, such as rewards of decisions that were never made."""
    often = [call for call in calls() if not call.slow]
    refused = []
    for call in often:
        try:
            call.target()(**call.given())
        except RobanditError:
            refused.append(call.name)
    assert len(refused) < 0.06 * len(often), refused


def test_what_is_not_mended_is_found():
    """A negative control: bare errors, long messages, control characters and surrogates are failures."""

    def failing(error):
        def function():
            raise error

        return Call("f", lambda: function, dict)

    for error in (
        TypeError("x"),
        RobanditError("x" * 2000),
        RobanditError(MARK * 201),
        RobanditError("\x1b"),
        RobanditError("\ud800"),
        MemoryError(),
    ):
        assert failure(failing(error), {})
    assert not failure(failing(RobanditError("x")), {})
