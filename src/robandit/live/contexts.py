"""The contexts of a live bandit: its features, the x of each open decision, and that of each choice since the last event.

A late reward is learned with the x of its decision, whatever the scales of numbers are by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from robandit.errors import InvalidInput
from robandit.features import Encoder, Scale
from robandit.kernel.types import Floats
from robandit.live.open_decisions import DecisionId
from robandit.validation import invalid


class SavedContexts(msgspec.Struct, array_like=True):
    """The saved form of `Contexts`. ``open`` has the x of each open decision, in order; ``asked`` that of each pending choice."""

    features: dict[str, Any]
    scales: dict[str, tuple[float, float]]
    first: dict[str, list[float]]
    open: bytes
    asked: bytes


class Contexts:
    """The contexts of a bandit. Not thread-safe: callers hold a lock."""

    __slots__ = ("asked", "encoder", "open")

    def __init__(self, encoder: Encoder) -> None:
        """Start without decisions."""
        self.encoder = encoder
        self.open: dict[DecisionId, Floats] = {}
        self.asked: list[Floats] = []
        """The x of each choice since the last event; the last is that of the selected arm, if there is one."""

    def encode(self, context: Any) -> tuple[Floats, tuple[float | None, ...]]:
        """Return x and the numbers without a scale; see `Encoder.encode`."""
        if context is None:
            names = ", ".join(self.encoder.features)
            rule = f"given: this bandit has features ({names})"
            raise invalid("context", context, rule, hint="such as decide(context={...})")
        return self.encoder.encode(context)

    def again(self, x: Sequence[float], unscaled: Sequence[float | None] = ()) -> Floats:
        """Return the x of an event, and take in its numbers without a scale. Raise `InvalidInput` if they do not fit."""
        if len(x) != len(self.encoder.columns) or not np.isfinite(x).all():
            raise invalid("x", tuple(x), f"{len(self.encoder.columns)} finite numbers, for the columns of this bandit")
        if len(unscaled) != len(self.encoder.first):
            raise InvalidInput("unscaled does not fit the numbers without a scale: apply all events of a log in order")
        return np.array(x, dtype=np.float64)

    def explained(self, x: Floats) -> dict[str, float]:
        """Return x with the names of its columns."""
        return dict(zip(self.encoder.columns, x.tolist(), strict=True))

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self, decisions: Iterable[DecisionId]) -> SavedContexts:
        """Return the contexts as plain data. ``decisions`` are the ids of all open decisions, in order."""
        encoder = self.encoder
        features = {name: feature.to_dict() for name, feature in encoder.features.items()}
        scales = {name: tuple(scale) for name, scale in encoder.scales.items()}
        rows = [self.open[id] for id in decisions]
        return SavedContexts(features, scales, encoder.first, _bytes(rows), _bytes(self.asked))  # type: ignore[arg-type]

    @classmethod
    def load(cls, saved: SavedContexts, decisions: Sequence[DecisionId], asked: int) -> Self | None:
        """Return the contexts that `save` wrote, or None if they are inconsistent or do not fit the decisions and choices."""
        contexts = cls(encoder := Encoder(saved.features))
        for name, (center, scale) in saved.scales.items():
            if name in encoder.first:
                encoder.set_scale(name, Scale(center, scale))
        if encoder.first.keys() != saved.first.keys():
            return None
        encoder.first |= saved.first
        d = len(encoder.columns)
        if len(saved.open) != 8 * d * len(decisions) or len(saved.asked) != 8 * d * asked:
            return None
        rows, choices = (np.frombuffer(data, dtype="<f8").reshape(-1, d) for data in (saved.open, saved.asked))
        if not (np.isfinite(rows).all() and np.isfinite(choices).all()):
            return None
        contexts.open = dict(zip(decisions, rows.copy(), strict=True))
        contexts.asked = list(choices.copy())
        return contexts


def _bytes(rows: Sequence[Floats]) -> bytes:
    return np.array(rows, dtype="<f8").tobytes()
