"""What the policies with Huber regression share: the parameters that they must be told, and the constants of their rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import params_of
from robandit.policies.linear.model import Linear
from robandit.validation import positive, probability


class Huber(Linear):
    """The base of both policies. The norm of x is taken to be at most sqrt(d)."""

    eps: float | None = None
    nu: float | None = None
    S: float | None = None
    horizon: int | None = None
    delta: float = 0.05
    scale: float = 1.0

    squeeze = 1.0
    """The factor of kappa's argument that the rule has: alpha of Hvt-UCB."""

    def validate(self) -> None:
        super().validate()
        check_known(self)
        for name in ("nu", "S"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), name, owner=type(self).__name__)
        probability(self.delta, "delta", owner=type(self).__name__)
        positive(self.scale, "scale", owner=type(self).__name__)

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """Return nu, the largest central moment to the power 1/(1 + eps), or S, the largest norm of coefficients."""
        if name == "nu":
            return float(problem.v(eps)) ** (1.0 / (1.0 + eps))
        if name == "S":
            return float(getattr(problem, "norm", np.abs(problem.means).max())) or 1.0
        return super().learned(name, problem, eps)

    def params(self) -> Any:
        """Return the parameters and the constants tau0, kappa and log(2 T^2 / delta) of the papers."""
        p = super().params()._asdict()
        d, rounds = float(self.d), float(self.horizon or 1)
        eps = self.eps or 1.0
        power = (1.0 - eps) / (2.0 * (1.0 + eps))
        log = math.log(2.0 * rounds * rounds / self.delta)
        kappa = d * math.log(1.0 + rounds * rounds / (self.squeeze * d))
        tau = math.sqrt(2.0 * kappa) * math.log(3.0 * rounds) ** power / log ** (1.0 / (1.0 + eps))
        own = {"power": power, "log": log, "kappa": kappa, "tau": tau, "least": 1.0 / math.sqrt(rounds)}
        return params_of(**p, **own, width=self.first_width(own))

    def first_width(self, own: dict[str, float]) -> float:
        """Return the part of the width that grows as t^power."""
        raise NotImplementedError

    def noise(self, state: Any) -> Floats:
        return np.full(len(state.theta), math.nan)

    def prior(self) -> Floats:
        return np.full(self.d, float(self.d))
