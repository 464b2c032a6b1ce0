"""The example application `examples/llm_router`: its simulated providers, and the whole of it as a process, as a user runs it."""

import importlib.util
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.serving import Local

pytestmark = pytest.mark.xdist_group("llm_router")  # one process plays the story

EXAMPLE = Path(__file__).parents[2] / "examples" / "llm_router"
_spec = importlib.util.spec_from_file_location("llm_router_providers", EXAMPLE / "providers.py")
providers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(providers)

SEED, RATE, SECONDS = 1, 10, 240
WAITING, FAILURE = 0.5, 5.0  # cents


# --- the providers -------------------------------------------------------------------------------------------------------


def answers(name, second, calls=1000, seed=0):
    """Return what a provider answers at a second: replies, and the types of errors."""
    world = providers.World(seed)
    world.second = second
    found = []
    for _ in range(calls):
        try:
            found.append(world.call(name))
        except (providers.ProviderTimeout, providers.HungUp) as error:
            found.append(type(error))
    return found


def replies(found):
    return [each for each in found if isinstance(each, providers.Reply)]


def test_swift_gets_slower_and_recovers_in_every_round():
    seconds = [0, 59.9, 60, 70, 80, 239.9, 240, 299, 360, 370]
    assert [providers.slowdown("swift", second) for second in seconds] == [1, 1, 1, 3.5, 6, 6, 1, 1, 1, 3.5]
    assert {providers.slowdown(name, second) for name in ("atlas", "cirrus") for second in range(600)} == {1}


def test_a_slow_provider_takes_as_many_times_longer():
    usual, slow = (answers("swift", second) for second in (0.0, 100.0))
    pairs = [(a, b) for a, b in zip(usual, slow, strict=True) if providers.ProviderTimeout not in (a, b)]
    assert len(pairs) > 950
    for a, b in pairs:  # the same random numbers
        assert a is b is providers.HungUp or (b.seconds == pytest.approx(6 * a.seconds) and b.cents == a.cents)


def test_all_calls_of_atlas_time_out_in_the_outage_and_only_then():
    for second in (135.0, 194.9, 300 + 135.0):
        assert set(answers("atlas", second)) == {providers.ProviderTimeout, providers.HungUp}
        assert len(replies(answers("cirrus", second))) > 950
    for second in (134.9, 195.0, 300.0):
        assert len(replies(answers("atlas", second))) > 950


def test_random_numbers_do_not_depend_on_the_provider():
    tokens = []
    for name, provider in providers.PROVIDERS.items():
        found = answers(name, 0.0, calls=50)
        assert [each is providers.HungUp for each in found] == [
            each is providers.HungUp for each in answers("swift", 0.0, 50)
        ]
        tokens.append([reply.cents / provider.cents for reply in replies(found)])
    assert tokens[0] == pytest.approx(tokens[1])
    assert tokens[0] == pytest.approx(tokens[2])
    assert answers("swift", 0.0, seed=1) != answers("swift", 0.0)


def is_as_likely(found, expected, n):
    """Return whether a number of n events is within 5 standard deviations of its expectation, and that is far from 0."""
    assert expected > 25
    return abs(found - expected) < 5 * math.sqrt(expected * (1 - expected / n))


def has_the_stated_tail(latencies):
    """Return whether latencies with median 1 exceed 10 and 40 as often as log-normal times Pareto variables with index 1.5 do.

    For x far above the log-normal body L, P(L Y > x) = E[L^1.5] x^-1.5, and E[L^1.5] = exp((1.5 sigma)^2 / 2).
    """
    n = len(latencies)
    moment = math.exp((1.5 * 0.5) ** 2 / 2)
    return all(is_as_likely(sum(x > at for x in latencies), n * 0.05 * moment * at**-1.5, n) for at in (10, 40))


@pytest.mark.parametrize("tail", [1.5, 2.5])  # with 2.5, the variance is finite: the control, which must fail
def test_latencies_have_infinite_variance(tail, monkeypatch):
    monkeypatch.setattr(providers, "LATENCY_TAIL", tail)
    rng = providers.random.Random(0)
    assert has_the_stated_tail([providers.latency(rng, 1.0) for _ in range(200_000)]) == (tail == 1.5)


@pytest.mark.parametrize("tail", [1.7, 2.5])  # with 2.5, the variance is finite: the control, which must fail
def test_numbers_of_tokens_have_infinite_variance(tail, monkeypatch):
    monkeypatch.setattr(providers, "TOKEN_TAIL", tail)
    cents = [reply.cents for reply in replies(answers("cirrus", 0.0, calls=20_000))]
    least = 0.2 * 200 / 1000
    assert min(cents) >= least
    assert is_as_likely(sum(each > 20 * least for each in cents), len(cents) * 20**-1.7, len(cents)) == (tail == 1.7)


# --- the whole story -----------------------------------------------------------------------------------------------------


def command(*options):
    return [sys.executable, EXAMPLE, *map(str, options)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Play four minutes as fast as possible. Return what was printed, and the answers of the service about both experiments.

    With a long window nothing expires, so the seed determines all decisions, however slow the machine is.
    """
    folder = tmp_path_factory.mktemp("llm_router")
    options = ["--seconds", SECONDS, "--rate", RATE, "--speed", 1e6, "--seed", SEED, "--window", 3600, "--data", folder]
    done = subprocess.run(command(*options), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    with Local(folder / "robandit.db") as local:  # it could not be opened if the service were still running
        experiments = {}
        for name in ("chat", "prompt"):
            log = local.call("GET", f"/v1/experiments/{name}/log").body.splitlines()
            shown = local.call("GET", f"/v1/experiments/{name}").json
            experiments[name] = shown | {"log": [json.loads(line) for line in log]}
    return done.stdout, experiments


def events(experiment, kind):
    return [event for event in experiment["log"] if event["kind"] == kind]


def test_every_reward_counts_once(played):
    """The simulation is played again with the decisions of the log. It must give the rewards of the log."""
    _, experiments = played
    world, chat, prompt = providers.World(SEED), {}, {}
    begun = iter(events(experiments["prompt"], "decided"))
    decided = events(experiments["chat"], "decided")
    assert len(decided) == RATE * SECONDS
    last = (len(decided) - 1) / RATE
    for number, decision in enumerate(decided):
        world.second = number / RATE
        try:
            reply = world.call(decision["arm"])
            chat[decision["id"]] = reply.cents + WAITING * reply.seconds
        except providers.ProviderTimeout:
            chat[decision["id"]] = FAILURE
        except providers.HungUp:
            pass
        if number % 4 == 0:
            conversation = next(begun)
            end, dollars = world.conversation(conversation["arm"])
            if end <= last:
                prompt[conversation["id"]] = dollars
    assert next(begun, None) is None
    for name, expected, decisions in (("chat", chat, len(decided)), ("prompt", prompt, len(decided) // 4)):
        rewarded = events(experiments[name], "rewarded")
        assert {event["id"]: event["reward"] for event in rewarded} == expected
        assert len(rewarded) == len(expected)
        counts = {"decisions": decisions, "rewards": len(expected), "open": decisions - len(expected)}
        assert experiments[name]["counts"] == counts | {"late": 0, "expired": 0}
        assert 0 < len(expected) < decisions


def test_traffic_follows_the_story(played):
    _, experiments = played
    arms = [event["arm"] for event in events(experiments["chat"], "decided")]

    def share(arm, start, end):
        return arms[start * RATE : end * RATE].count(arm) / ((end - start) * RATE)

    assert share("swift", 30, 60) > 0.8
    assert share("swift", 90, 135) < 0.2, "swift is slow"
    assert share("atlas", 100, 135) > 0.8
    assert share("atlas", 145, 195) < 0.1, "atlas is down"
    assert share("cirrus", 145, 195) > 0.8
    assert share("atlas", 215, 240) > 0.8, "atlas is back"


def test_the_service_warns(played):
    _, experiments = played
    warnings = experiments["chat"]["warnings"]
    for pattern in (
        r"'swift' changed .* median 0\.\d+ -> ",
        r"'atlas' changed .* -> 5 ",
        r"'atlas' changed .* 5 -> 0\.",
    ):
        assert any(re.search(pattern, each) for each in warnings), warnings
    assert any("CONTRADICTED" in each for each in experiments["prompt"]["warnings"])


def test_the_story_is_printed(played):
    printed, _ = played
    assert printed.startswith("dashboard: http://127.0.0.1:")
    assert printed.endswith("\nstopped\n")
    times = {second: f"{second // 60:.0f}:{second % 60:02.0f}" for second in providers.STORY}
    for second, text in providers.STORY.items():
        assert (f"\n{times[second]}  --- {text} ---\n" in printed) == (second < SECONDS)
    assert re.search(r"^\d:\d\d  warning, chat: Arm 'swift' changed", printed, re.MULTILINE)
    assert re.search(r"^2:45  swift +\d+ %  atlas +\d %  cirrus +9\d %   chat: ", printed, re.MULTILINE)


# --- the end -------------------------------------------------------------------------------------------------------------


def started(folder, *options):
    """Start the example, with its temporary folder in this one. Return the process and the port of its service."""
    process = subprocess.Popen(
        command(*options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
        start_new_session=True,
    )
    return process, int(process.stdout.readline().rpartition(":")[2])


def check_clean_end(process, port, folder):
    """Wait for the end, and check that nothing is left."""
    try:
        printed, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, errors
    assert printed.endswith("stopped\n")
    assert not list(folder.glob("robandit-*"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_decisions_expire_and_ctrl_c_ends_both_processes(tmp_path):
    process, port = started(tmp_path, "--rate", 20, "--speed", 20, "--window", 0.2)
    for line in process.stdout:
        if re.search(r"chat: .* [1-9]\d* expired   prompt: .* [1-9]\d* expired", line):
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group of processes
    check_clean_end(process, port, tmp_path)


def test_sigterm_ends_both_processes(tmp_path):
    process, port = started(tmp_path)
    process.terminate()
    check_clean_end(process, port, tmp_path)


def test_the_router_is_short():
    lines = [line for line in (EXAMPLE / "router.py").read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 50
