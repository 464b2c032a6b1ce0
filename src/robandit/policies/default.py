"""The default policy: of a live bandit, of an experiment of the service, of `Probing`, `Restarting` and the adapter to river."""

from __future__ import annotations

from robandit.policies.adakl.adakl_ucb import AdaKLUCB

DEFAULT = AdaKLUCB()
