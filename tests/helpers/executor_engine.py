"""An engine on any executor, to test how a run treats its engine without a cluster."""

import pickle
from concurrent.futures import BrokenExecutor, CancelledError

from robandit.errors import EngineLost, VersionSkew
from robandit.experiments.dask_cluster import DaskEngine
from robandit.experiments.engines import play, versions
from robandit.experiments.own_code import Packed, own_modules

AHEAD = 16  # waiting units


class OnExecutor(DaskEngine):
    """Play units on an executor. Modules of users are sent with the plan."""

    shares_cache = True

    def __init__(self, executor):
        self._executor, self._sent = executor, None

    def begin(self, plan):
        modules = own_modules(cell.policy for cell in plan.cells)
        self._sent = Packed(modules, pickle.dumps(plan)) if modules else plan

    def submit(self, number):
        try:
            return self._executor.submit(play, self._sent, number, versions())
        except RuntimeError as error:  # broken, or shut down
            raise EngineLost(f"the executor takes no more work: {error}") from error

    def room(self, under_way):
        return AHEAD - sum(not future.running() for future in under_way)

    def workers(self):
        return None

    def explain(self, error):
        if isinstance(error, (EngineLost, VersionSkew)):
            return error
        if isinstance(error, (BrokenExecutor, CancelledError)):
            return EngineLost(f"the executor is broken: {error}")
        return None

    def end(self, under_way):
        for future in under_way:
            future.cancel()
