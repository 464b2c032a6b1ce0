"""Policies for the workers of dask_farm: one that kills them, one that is wrong, one that they do not have compiled."""

import os
import signal

import robandit as rb
from own_policies import Greedy

ARMED = False  # set in the workers of dask_farm


class Deadly(Greedy):
    """Kills its worker before the first pull."""

    def init(self, arms, horizon):
        if ARMED:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().init(arms, horizon)


class Wrong(Greedy):
    """Chooses an arm that is not there."""

    @staticmethod
    def select(p, s):
        return 99


class Idle(rb.Uniform):
    """Pulls one arm; compiled by nobody before."""

    label = "Idle"

    @staticmethod
    def select(p, s):
        return 0
