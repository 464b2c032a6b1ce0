"""Policies for workers that tests start: one that kills them, one that is wrong, one that they do not have compiled."""

import multiprocessing
import os
import signal

import robandit as rb
from helpers.own_policies import Greedy

ARMED = multiprocessing.parent_process() is not None  # as workers of a LocalCluster have; those of dask_farm set it


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
