"""Writes and reads saved bandits: a header (a name, the format's version, a SHA-256 checksum), then the fields in MessagePack."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from robandit.errors import CorruptFile, InvalidInput
from robandit.files import check_format
from robandit.live.arms import checked_arms
from robandit.live.memory import Memory, SavedMemory
from robandit.policies.base import Policy, with_allowed, without_allowed

MAGIC = b"robandit"
FORMAT_VERSION = 1
HEADER = len(MAGIC) + 4 + 32
"""The number of bytes before the fields."""


class _Saved(msgspec.Struct, kw_only=True):
    """The fields of a saved bandit, in the order of the file. Fields with a default are missing in older files."""

    policy: dict[str, Any]
    arms: list[Any]
    received: list[int]
    open: list[tuple[int, int, float]]
    next: int
    expired: int = 0
    pick: int
    state: dict[str, tuple[str, list[int], bytes]]
    record: SavedMemory | None = None


FIELDS = _Saved.__struct_fields__
"""The names of the fields. A `Bandit` stores each field as an attribute with an underscore before the name."""


def pack(fields: Mapping[str, Any]) -> bytes:
    """Return the saved form of a bandit with these fields."""
    state = without_allowed(fields["state"])._asdict()
    saved = {
        **fields,
        "policy": fields["policy"].to_dict(),
        "open": [[number, arm, mark] for number, (arm, mark) in fields["open"].items()],
        "state": {name: [array.dtype.str, array.shape, array.tobytes()] for name, array in state.items()},
        "record": fields["record"].save(),
    }
    payload = msgspec.msgpack.encode(saved)
    return MAGIC + FORMAT_VERSION.to_bytes(4, "big") + hashlib.sha256(payload).digest() + payload


def unpack(data: bytes, source: str) -> dict[str, Any]:
    """Return the fields of the bandit that `pack` wrote. Errors name the ``source``, such as a file."""
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "big")
    if data[: len(MAGIC)] != MAGIC or len(data) < HEADER or version < 1:
        raise CorruptFile(f"{source} is not a bandit that Robandit saved")
    check_format(version, FORMAT_VERSION, source)
    payload = data[HEADER:]
    if hashlib.sha256(payload).digest() != data[HEADER - 32 : HEADER]:
        raise CorruptFile(f"{source} is damaged: its checksum does not match; restore it from a copy")
    try:
        saved = msgspec.msgpack.decode(payload, type=_Saved)
        arms = checked_arms(saved.arms)
    except (msgspec.MsgspecError, RecursionError, InvalidInput) as error:
        raise CorruptFile(f"{source} is damaged: {error}") from error
    policy = Policy.from_dict(saved.policy)
    decisions_fit = all(0 <= arm < len(arms) and 0 <= number < saved.next for number, arm, _ in saved.open)
    counts_fit = len(saved.received) == len(arms) and min([saved.expired, *saved.received]) >= 0
    if not (decisions_fit and counts_fit and -1 <= saved.pick < len(arms)):
        raise CorruptFile(f"{source} is damaged: its counts, decisions and arms do not fit together")
    memory = Memory.load(saved.record, len(arms))
    if memory is None:
        raise CorruptFile(f"{source} is damaged: its record of rewards does not fit its arms")
    return {name: getattr(saved, name) for name in FIELDS} | {
        "policy": policy,
        "arms": arms,
        "open": {number: (arm, mark) for number, arm, mark in saved.open},
        "state": _restored(source, policy, len(arms), saved.state),
        "record": memory,
    }


def _restored(source: str, policy: Policy, arms: int, saved: dict[str, Any]) -> Any:
    """Return the saved arrays as the policy's state. Raise `CorruptFile` unless names, types and sizes fit the policy."""
    fresh = policy.init(arms, None)
    try:
        arrays = {n: np.frombuffer(data, dtype=kind).reshape(shape).copy() for n, (kind, shape, data) in saved.items()}
    except (TypeError, ValueError) as error:
        raise CorruptFile(f"{source} is damaged: {error}") from error
    if set(arrays) != set(fresh._fields) or not all(_fits(arrays[n], array) for n, array in fresh._asdict().items()):
        raise CorruptFile(f"{source}: {policy.label} cannot use this state, which another version of the policy saved")
    return with_allowed(type(fresh)(**arrays), np.ones(arms, dtype=np.bool_))


def _fits(saved: Any, fresh: Any) -> bool:
    """Return whether a saved array has the type of the fresh one, and its size or, after growing, a larger one."""
    same = saved.dtype == fresh.dtype and saved.ndim == fresh.ndim
    return same and all(now >= first for now, first in zip(saved.shape, fresh.shape, strict=True))
