"""The default policy: of a live bandit, an experiment of the service, `Floor`, `Probing` and `Restarting`."""

from __future__ import annotations

from robandit.policies.adakl.adakl_ucb import AdaKLUCB

DEFAULT = AdaKLUCB()
