"""Saved bandits that somebody made by hand, with valid checksums, and a process that loads and plays them.

A case may end its process, or never end, if a check is missing. So cases run in children:
``python crafting.py NOTES CASES...`` plays each case, and writes one line of JSON per case to the file NOTES before and after it.
A case is "POLICY:SEED", which decides it alone, or the path of a file.
"""

import faulthandler
import hashlib
import itertools
import json
import os
import subprocess
import sys
import traceback
import warnings
from datetime import timedelta
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

import robandit as rb
from helpers.every_policy import every_policy
from robandit.errors import KernelError, RobanditError
from robandit.live.saving import HEADER

HORIZON = 500
POLICIES = every_policy(HORIZON)
SLOW = ("MARS", "RMM-UCB", "KLinf-UCB", "Catoni-Lepskii UCB", "Gaussian TS")
ROUNDS = 30
PLAIN_ROUNDS = 6
PLAIN_PULLS = 40  # before a case that is played by plain Python, so that nothing is compiled for it
LONGEST = float(os.environ.get("LONGEST", "60"))  # seconds that one case may take, on a busy machine
INTEGERS = (-1, 0, 1, 2, 3, 4, 31, 32, 64, 128, 255, 256, 2**31, 2**52, 2**53, 2**62, 2**63 - 1, -2, -(2**31), -(2**63))
FLOATS = (
    np.nan,
    np.inf,
    -np.inf,
    -1.0,
    0.0,
    -0.0,
    1.0,
    2.0,
    3.0,
    0.5,
    64.0,
    1e9,
    2.0**53,
    1e150,
    1e308,
    -1e308,
    1e-320,
)
ANY = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**64 - 1,
    -1.5,
    1e308,
    float("nan"),
    "",
    "x",
    "paused",
    "é" * 100,
    b"x",
    b"",
    [],
    {},
)


# --- bandits to begin with ------------------------------------------------------------------------------------------------


def loss(rng, arm):
    return -float(rng.pareto(1.6)) - 0.3 * arm if rng.random() < 0.9 else 0.0


def hard_rewards(policy, rng):
    """Rewards that AdaKL-UCB sums in clusters, and AdaR-UCB thins to cells; none for other policies."""
    if isinstance(policy, (rb.AdaKLUCB, rb.AdaKLProved)):
        return np.concatenate([rng.normal(size=200), rng.normal(100.0, 5.0, 3000)])
    if isinstance(policy, rb.AdaRUCB):
        return np.where(np.arange(6000) % 2 == 0, -rng.pareto(0.5, 6000), 1e-3 * rng.normal(size=6000))
    return ()


@cache
def saved(number, pulls):
    """The bytes of a bandit with an added, a paused and a restricted arm, and with open decisions."""
    policy = POLICIES[number]
    rng = np.random.default_rng([number, pulls])
    way = "never" if pulls == PLAIN_PULLS else "now"
    bandit = rb.Bandit(["a", "b", "c"], policy, seed=1, clock=lambda: 1e9, compile=way, minimize=bool(number % 2))
    hard = hard_rewards(policy, rng)
    if pulls > 100 and len(hard):
        bandit.update_many(["a"] * len(hard), hard if not number % 2 else -np.asarray(hard))
    for step in range(pulls):
        if step == pulls // 2:
            bandit.add_arm("dé")
        if step == pulls - 8 and policy.respects_allowed:
            bandit.pause_arm("b")
        if step % 10 == 3:
            bandit.decide()
        arm = bandit.select()
        bandit.update(arm, loss(rng, bandit.arms.index(arm)))
    if policy.respects_allowed and pulls % 2:
        bandit.select(among=["a", "c"])
    return bandit.to_bytes()


# --- damage ---------------------------------------------------------------------------------------------------------------


def crafted(number, seed):
    """A file and a description of what was changed in it."""
    rng = np.random.default_rng([number, seed])
    pulls = (PLAIN_PULLS, 41, 41, 160)[seed % 4] if POLICIES[number].label not in SLOW else (24, 25)[seed % 2]
    data = saved(number, pulls)
    done = []
    if rng.random() < 0.2:
        payload = bytearray(data[HEADER:])
        for _ in range((1, 1, 1, 2, 3)[rng.integers(5)]):
            flip(rng, payload, done)
    else:
        content = msgspec.msgpack.decode(data[HEADER:])
        for _ in range((1, 1, 1, 2, 3)[rng.integers(5)]):
            change = (in_state, in_state, in_state, in_column, in_shape, anywhere, anywhere)[rng.integers(7)]
            try:
                change(rng, content, done)
            except (TypeError, ValueError, LookupError, AttributeError):  # an earlier change has left no such array
                break
        payload = msgspec.msgpack.encode(content)
    payload = bytes(payload)
    return data[: HEADER - 32] + hashlib.sha256(payload).digest() + payload, done


def flip(rng, payload, done):
    """Change a byte, or cut or insert some. 0xff and 0xc0 are no UTF-8."""
    at = int(rng.integers(len(payload)))
    kind = rng.integers(4)
    if kind == 0:
        payload[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        payload[at] = (0xFF, 0xC0, 0x00, 0x80, 0x7F)[rng.integers(5)]
    elif kind == 2:
        payload[at : at + int(rng.integers(1, 9))] = bytes(rng.integers(0, 256, 8, dtype=np.uint8))
    else:
        letter = payload.find((b"a", b"b", b"active", "dé".encode(), b"policy", b"lead")[rng.integers(6)], at)
        if letter >= 0:
            payload[letter] = 0xFF
    done.append(f"byte {at}, kind {kind}")


def other_number(rng, old, size):
    """A number of the same type at a limit, or close to the old one."""
    if old.dtype.kind == "f":
        return (*FLOATS, float(old) + 1.0, float(old) * 2.0, -float(old), float(size))[rng.integers(len(FLOATS) + 4)]
    near = (size, size - 1, size + 1, int(old) + 1, int(old) - 1, 2 * int(old))
    limits = np.iinfo(old.dtype)
    return min(max((INTEGERS + near)[rng.integers(len(INTEGERS) + len(near))], limits.min), limits.max)


def arrays_of(rng, content):
    """A field of the state, most often one of integers, as a writable array."""
    state = content["state"]
    whole = [name for name in state if state[name][0][1] in "iub" and name != "rng"]
    names = whole if whole and rng.random() < 0.6 else list(state)
    name = names[rng.integers(len(names))]
    kind, shape, data = state[name]
    return name, np.frombuffer(data, dtype=kind).reshape(shape).copy()


def put(content, name, array):
    content["state"][name] = [array.dtype.str, list(array.shape), array.tobytes()]


def in_state(rng, content, done):
    name, array = arrays_of(rng, content)
    if array.size:
        place = np.unravel_index(rng.integers(array.size), array.shape)
        if rng.random() < 0.5:  # most buffers are empty behind their beginnings
            place = tuple(min(int(i), int(rng.integers(0, 6))) for i in place)
        array[place] = other_number(rng, array[place], array.shape[rng.integers(array.ndim)])
        put(content, name, array)
        done.append(f"{name}{[int(i) for i in place]} = {array[place]!r}")


def in_column(rng, content, done):
    name, array = arrays_of(rng, content)
    if array.size:
        column = int(rng.integers(array.shape[-1]))
        array[..., column] = other_number(rng, array[..., column].flat[0], array.shape[0])
        put(content, name, array)
        done.append(f"{name}[..., {column}] = {array[..., column].flat[0]!r}")


def in_shape(rng, content, done):
    name, array = arrays_of(rng, content)
    axis = int(rng.integers(array.ndim))
    kind = rng.integers(5)
    if kind == 0:
        array = np.concatenate([array, np.take(array, range(min(3, array.shape[axis])), axis)], axis)
    elif kind == 1:
        array = np.take(array, range(array.shape[axis] // 2), axis)
    elif kind == 2:
        array = array.astype(array.dtype.newbyteorder(">") if rng.random() < 0.5 else np.int32)
    elif kind == 3:
        array = array.reshape(-1)
    put(content, name, array)
    if kind == 4:
        content["state"][name][rng.integers(2)] = ANY[rng.integers(len(ANY))]
    done.append(f"shape of {name}, axis {axis}, kind {kind}")


def anywhere(rng, content, done):
    """Replace, drop or double any part, or write a number into packed ones."""
    around, key, path = {"": content}, "", []
    while isinstance(around[key], (dict, list)) and len(around[key]) and (rng.random() < 0.8 or not path):
        around = around[key]
        keys = list(around) if isinstance(around, dict) else range(len(around))
        key = keys[rng.integers(len(keys))]
        path.append(key)
    old = around[key]
    if isinstance(old, bytes) and len(old) >= 8 and rng.random() < 0.8:
        part = bytearray(old)
        at = 8 * int(rng.integers(len(old) // 8)) + int(rng.integers(2)) * (len(old) % 8)
        number = np.float64(FLOATS[rng.integers(len(FLOATS))]) if rng.random() < 0.5 else np.int64(rng.choice(INTEGERS))
        part[at : at + 8] = number.tobytes()
        around[key] = bytes(part)
        done.append(f"{path} at {at}: {number!r}")
    elif isinstance(old, int) and rng.random() < 0.5:
        around[key] = (*INTEGERS, old + 1, old - 1)[rng.integers(len(INTEGERS) + 2)]
        done.append(f"{path} = {around[key]}")
    elif rng.random() < 0.2 and path:
        if isinstance(around, list):
            around.insert(key, old)
        else:
            del around[key]
        done.append(f"{path} twice or gone")
    else:
        value = ANY[rng.integers(len(ANY))] if rng.random() < 0.95 else deep(int(rng.integers(1, 900)))
        if path:
            around[key] = value
            done.append(f"{path} = {value!r:.40}")


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


# --- playing --------------------------------------------------------------------------------------------------------------


def play(bandit, rng, rounds):
    """Use every method that the policy's hooks stand behind. Errors about a full ledger or horizon are in order."""
    for step in range(rounds):
        try:
            one_round(bandit, rng, step)
        except KernelError:
            raise
        except RobanditError:
            pass
    bandit.estimates()
    bandit.counters()
    bandit.to_bytes()


def one_round(bandit, rng, step):
    active = [arm for arm, state in bandit.states.items() if state == "active"]
    if step == 5:
        bandit.estimates()
    if step == 9 and len(active) > 1 and bandit.policy.respects_allowed:
        bandit.select(among=active[:-1])
    if step == 12:
        bandit.add_arm(f"new {len(bandit.arms)}")
    if step == 17 and len(active) > 1 and bandit.policy.respects_allowed:
        bandit.pause_arm(active[0])
    if step == 21:
        bandit.diagnose()
    if step % 3 == 1:
        bandit.decide()
    elif step % 7 == 5:
        for decision in bandit.open[:2]:
            bandit.reward(decision, loss(rng, 1))
    elif step == 24:
        bandit.expire(older_than=timedelta(0))
    else:
        arm = bandit.select()
        bandit.update(arm, loss(rng, list(bandit.arms).index(arm)))


def opened(case):
    """The bytes of a case, what was changed in them, and its seed."""
    number, _, seed = case.rpartition(":")
    if number:
        return *crafted(int(number), int(seed)), int(seed)
    return Path(case).read_bytes(), [], 0 if case.endswith(".never") else 1


def one_case(case):
    """Load a crafted file and play it; return what happened, and the changes."""
    data, changes, seed = opened(case)
    plain = seed % 4 == 0
    rng = np.random.default_rng(seed)
    try:
        bandit = rb.Bandit.from_bytes(data, clock=lambda: 2e9, compile="never" if plain else "now")
        play(bandit, rng, PLAIN_ROUNDS if plain else ROUNDS)
    except RobanditError as error:  # at load, or at first use
        if len(str(error)) < 10:
            raise
        return f"{type(error).__name__}", changes, str(error)
    return "played", changes, ""


def run(notes, cases):
    warnings.simplefilter("ignore")
    faulthandler.enable()
    for case in cases:
        print(json.dumps({"case": case}), file=notes, flush=True)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try:
            outcome, changes, message = one_case(case)
        except Exception as error:
            place = "".join(traceback.format_exception(error)[-3:])
            outcome, changes, message = f"FAILED {type(error).__name__}", opened(case)[1], f"{error}\n{place}"
        result = {"case": case, "outcome": outcome, "changes": changes, "message": message[:1500]}
        print(json.dumps(result, default=repr), file=notes, flush=True)
    faulthandler.cancel_dump_traceback_later()


def run_in_child(folder, cases):
    """Run cases in other processes; return their results. A case that ends its process is a result, too."""
    results = []
    left = list(cases)
    for turn in itertools.count():
        if not left:
            return results
        notes = Path(folder) / f"notes.{turn}"
        command = [sys.executable, __file__, str(notes), *left]
        paths = os.pathsep.join([str(Path(__file__).parent.parent), str(Path(rb.__file__).parent.parent)])
        child = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": paths}
        )
        lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        results += [line for line in lines if "outcome" in line]
        if child.returncode == 0:
            return results
        if not lines:
            raise AssertionError(child.stderr)
        ended = lines[-1]["case"]
        reason = f"FAILED with exit code {child.returncode}"
        changes = opened(ended)[1]
        results.append({"case": ended, "outcome": reason, "changes": changes, "message": child.stderr[-2000:]})
        left = left[left.index(ended) + 1 :]
    return results


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        run(file, sys.argv[2:])
