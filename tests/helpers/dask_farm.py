"""Real Dask schedulers and workers in processes of their own, which tests may kill.

They are forked from one process that has imported what they need: each is there in a fraction of a second, not after three.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

# Orders are lines of JSON. Workers that end are forked again, as a nanny would do, until their cluster is to end.
FARM = """
import asyncio, json, logging, os, select, signal, sys
sys.path.insert(0, {tests!r})
import dask, distributed
import robandit.experiments.runner
from helpers import deadly_policies, small_plan
from robandit.kernel import cache
for cell in small_plan.small_plan(replications=4).cells:
    [cache.ready(kernel, cell.label) for kernel in cell.kernels()]
logging.disable(logging.CRITICAL)
dask.config.set({{"distributed.scheduler.allowed-failures": 1}})
children = {{}}  # by process number: their orders

async def schedule(file):
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        with open(file + ".new", "w") as new:
            json.dump(scheduler.identity(), new)
        os.replace(file + ".new", file)
        await scheduler.finished()

async def work(file):
    address = json.load(open(file))["address"]
    folder = os.path.dirname(file)
    async with distributed.Worker(address, nthreads=1, dashboard=False, local_directory=folder) as worker:
        await worker.finished()

def count(file, store=cache._store):
    def stored(path, content):
        with open(file, "a") as lines:
            lines.write(f"{{os.getpid()}} {{path.stem}}\\n")
        store(path, content)
    cache._store = stored

def start(order):
    pid = os.fork()
    if pid == 0:
        try:
            os.environ.update(order.get("env", {{}}))
            sys.path[:0] = order.get("path", [])
            deadly_policies.ARMED = True
            if "compilations" in order:
                count(order["compilations"])
            asyncio.run((schedule if order["do"] == "scheduler" else work)(order["file"]))
        finally:
            os._exit(0)
    children[pid] = order
    return pid

def look():
    for pid, order in list(children.items()):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            del children[pid]
            if order["do"] == "worker" and os.path.exists(order["file"]):
                start(order)

def obey(order):
    pids = [pid for pid, each in children.items() if each["file"] == order["file"]]
    if order["do"] == "workers":
        return [pid for pid in pids if children[pid]["do"] == "worker"]
    if order["do"] == "end":
        for pid in pids:
            del children[pid]
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return pids
    return start(order)

while True:
    look()
    if select.select([sys.stdin], [], [], 0.02)[0]:
        line = sys.stdin.readline()
        if not line:
            break
        print(json.dumps(obey(json.loads(line))), flush=True)
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, farm, file):
        self.farm, self.file = farm, file
        self.scheduler = self._order("scheduler")
        wait_for(file.exists)

    def start_worker(self, **more):
        """With ``env``, ``path`` (before the others in sys.path) and ``compilations``, a file where they are told."""
        return self._order("worker", **more)

    def workers(self):
        """Process numbers of those that live."""
        return self._order("workers")

    def end(self):
        self._order("end")

    def _order(self, do, **more):
        self.farm.stdin.write(json.dumps({"do": do, "file": str(self.file), **more}) + "\n")
        self.farm.stdin.flush()
        return json.loads(self.farm.stdout.readline())


@contextmanager
def dask_farm(folder):
    """Yield what makes a cluster with so many workers; all are gone at the end."""
    text = FARM.format(tests=str(Path(__file__).parents[1]))
    farm = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    clusters = []

    def make(workers):
        clusters.append(Cluster(farm, folder / f"scheduler-{len(clusters)}.json"))
        for _ in range(workers):
            clusters[-1].start_worker()
        return clusters[-1]

    try:
        yield make
    finally:
        farm.stdin.close()
        assert farm.wait(60) == 0
        farm.stdout.close()


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(happens, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.005)
