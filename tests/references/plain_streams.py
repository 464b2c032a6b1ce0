"""Slow and obvious accumulators: they keep every value, and use fractions. They share no code with the package."""

from __future__ import annotations

import math
from fractions import Fraction

from mpmath import mp, mpf

C = (1.0 + math.sqrt(2.0)) ** 2


class PlainTrimmedMean:
    """Two lists."""

    def __init__(self) -> None:
        self.x: list[Fraction] = []
        self.other: list[Fraction] = []

    def update(self, value: float) -> None:
        (self.x if len(self.x) <= len(self.other) else self.other).append(Fraction(value))

    def update_many(self, values) -> None:
        for value in values:
            self.update(float(value))

    def merge(self, other: PlainTrimmedMean) -> None:
        self.x += other.x
        self.other += other.other

    def squared_threshold(self, a: float) -> Fraction | None:
        sizes = sorted((abs(z) for z in self.other if z != 0), reverse=True)
        if len(sizes) <= a:
            return None
        rest, wanted = sum(z * z for z in sizes), Fraction(a)
        for d, z in enumerate(sizes):
            if rest >= z * z * (wanted - d):
                return rest / (wanted - d)
            rest -= z * z
        raise AssertionError("there is always a root")

    def estimate(self, delta: float, parts: float = 2.0) -> dict[str, mpf] | None:
        """Threshold, trimmed mean and standard deviation, number trimmed."""
        squared = self.squared_threshold(C * math.log(parts / delta))
        if squared is None or len(self.x) < 2:
            return None
        n = len(self.x)
        # An accumulator compares sizes with the double that it reports; so does this.
        with mp.workdps(60):
            threshold = mp.sqrt(mpf(squared.numerator) / mpf(squared.denominator))
            limit = Fraction(float(threshold)) if mpf(float(threshold)) > 0 else Fraction(0)
            kept = [z for z in self.x if abs(z) <= limit]
            total, squares = sum(kept, Fraction(0)), sum((z * z for z in kept), Fraction(0))
            mean = total / n
            variance = (squares - total * mean) / (n - 1)
            return {
                "threshold": threshold,
                "mean": mpf(mean.numerator) / mpf(mean.denominator),
                "sd": mp.sqrt(mpf(variance.numerator) / mpf(variance.denominator)),
                "trimmed": mpf(n - len(kept)),
            }


def catoni_total(values, alpha: float, theta) -> mpf:
    """sum psi(alpha (x - theta)) at 50 digits; it falls in theta."""
    with mp.workdps(50):
        out = mpf(0)
        for v in values:
            off = mpf(float(v)) - theta
            y = abs(alpha * off)
            out += mp.sign(off) * mp.log1p(y + y * y / 2)
        return out
