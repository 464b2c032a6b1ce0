"""Units on engines, most of them Dask clusters: the same bytes even if processes are killed, and errors with a way to continue."""

import json
import os
import random
import threading
import weakref
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.dask_farm import dask_farm, kill
from helpers.deadly_policies import Deadly, Idle, Wrong
from helpers.executor_engine import AHEAD, OnExecutor
from helpers.small_plan import everything, nothing_half_written, small_plan
from robandit.errors import EngineLost, InvalidInput, VersionSkew
from robandit.experiments import dask_cluster, dask_engine, engines, run
from robandit.experiments.engines import Lapsed, Sent, play
from robandit.experiments.ledger import Ledger
from robandit.experiments.runner import Compiling, Playing
from robandit.files import UNSEALED, sealed

pytestmark = [
    pytest.mark.xdist_group("clusters"),  # one process has the farm
    pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked from a warm process"),
]
pytest.importorskip("distributed", reason='Dask is not installed: pip install "robandit[cluster]"')
dask = pytest.importorskip("dask")

UNITS = 40


def plan_of_many():
    return small_plan(replications=2 * UNITS)


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    with dask_farm(tmp_path_factory.mktemp("farm")) as make:
        yield make


@pytest.fixture(scope="module")
def two(farm):
    """A cluster of two workers for tests that leave it as it was, and an engine on it."""
    cluster = farm(workers=2)
    with dask_engine(scheduler_file=cluster.file) as engine:
        yield cluster, engine
    cluster.end()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Parts and tables of an undisturbed run on one thread."""
    folder = tmp_path_factory.mktemp("run")
    assert run(plan_of_many(), folder, threads=1).done == UNITS
    return everything(folder)


def at(moments, do):
    """Return a progress function that calls ``do`` at these numbers of finished units, and the list of all states."""
    left, states = sorted(moments), []

    def progress(state):
        states.append(state)
        while isinstance(state, Playing) and left and state.units_done >= left[0]:
            do(left.pop(0))

    return progress, states


# --- the same bytes -------------------------------------------------------------------------------------------------


def test_a_cluster_gives_the_same_bytes_and_has_few_units_at_a_time(two, expected, tmp_path):
    _, engine = two
    waiting = []
    states = []

    def progress(state):
        states.append(state)
        waiting.append(len(engine._futures))

    outcome = run(plan_of_many(), tmp_path, engine=engine, progress=progress)
    assert (outcome.done, outcome.before, outcome.failed) == (UNITS, 0, ())
    assert everything(tmp_path) == expected
    assert 2 <= max(waiting) <= 2 * dask_cluster.PER_THREAD
    assert nothing_half_written(tmp_path)
    assert states[-1].workers == 2
    assert not any(isinstance(state, Compiling) for state in states), "workers compile what they need"
    assert not np.isnan([m.seconds for m in outcome.store.results().measured]).any()


def test_dasks_own_executor_and_a_problem_of_many_rewards(two, tmp_path):
    _, engine = two
    rewards = np.random.default_rng(1).normal(size=(2, 3_000)) + [[0.0], [-0.5]]
    problem = rb.Problem([rb.laws.Empirical(each) for each in rewards])
    plan = small_plan(problem=problem, policies=[rb.Uniform()])
    run(plan, tmp_path / "threads", threads=1)
    outcome = run(plan, tmp_path / "executor", engine=engine._client.get_executor())
    assert outcome.done == 5
    assert everything(tmp_path / "executor") == everything(tmp_path / "threads")


# --- workers that die -----------------------------------------------------------------------------------------------


def test_workers_killed_at_random_moments_change_nothing(farm, expected, tmp_path):
    cluster = farm(workers=2)
    rng = random.Random(20)
    progress, _ = at([0, *rng.sample(range(1, UNITS - 4), 4)], lambda _: kill(rng.choice(cluster.workers())))
    written = []
    with dask_engine(scheduler_file=cluster.file) as engine, pytest.MonkeyPatch.context() as patch:
        receive = Ledger.receive
        patch.setattr(
            Ledger, "receive", lambda self, unit, *more: (written.append(unit.key), receive(self, unit, *more))
        )
        outcome = run(plan_of_many(), tmp_path, engine=engine, progress=progress)
    cluster.end()
    assert outcome.done == len(written) == len(set(written)) == UNITS
    assert outcome.failed == ()
    assert everything(tmp_path) == expected
    assert nothing_half_written(tmp_path)


@pytest.mark.parametrize("tries", [1, 3])
def test_a_unit_that_kills_its_workers_is_reported_and_the_run_ends(two, tmp_path, tries):
    _, engine = two
    states = []
    plan = small_plan(policies=[Deadly(), rb.UCB1(), rb.Uniform()], replications=8, pulls=8 * 500)
    outcome = run(plan, tmp_path, engine=engine, tries=tries, progress=states.append)
    failed = {failure.unit.cell.label: failure for failure in outcome.failed}
    assert outcome.done + len(failed) == 3, "units that waited on the same workers may fail with it"
    assert "2 workers that had this unit died" in failed["Deadly"].traceback
    assert "may need more memory than a worker has" in failed["Deadly"].traceback
    assert failed["Deadly"].tries == min(tries, 2)
    assert states[-1].failures == len(failed)
    assert nothing_half_written(tmp_path)


def test_a_worker_on_this_machine_comes_back_however_often_a_unit_kills_it(tmp_path, caplog):
    impatient = {"distributed.deploy.lost-worker-timeout": "1 ms", "distributed.scheduler.allowed-failures": 0}
    plan = small_plan(policies=[Deadly()], replications=4)
    with dask.config.set(impatient), dask_engine(workers=1) as engine:
        outcome = run(plan, tmp_path, engine=engine)  # tried once more, by the worker that came back
        assert (outcome.done, len(outcome.failed)) == (0, 1)
        assert "1 worker that had this unit died" in outcome.failed[0].traceback
        engine._cluster.scale(0)
        with pytest.raises(
            EngineLost, match=r"cannot be started again\. Finished units are kept in .* \(0 of 1 units\)"
        ):
            run(plan, tmp_path, engine=engine)
    assert dask.config.get("distributed.deploy.lost-worker-timeout") != "365 days"
    assert caplog.records == [], "the run says what failed"
    assert nothing_half_written(tmp_path)


def test_an_exception_on_a_worker_is_tried_again_and_recorded_with_its_traceback(two, tmp_path):
    _, engine = two
    states = []
    outcome = run(small_plan(policies=[rb.UCB1(), Wrong()]), tmp_path, engine=engine, tries=2, progress=states.append)
    assert (outcome.done, len(outcome.failed)) == (5, 5)
    assert outcome.failed[0].tries == 2
    assert "chose arm 99, but arms are 0 to 1" in outcome.failed[0].traceback
    assert states[-1].retries == 5


# --- no workers, and no scheduler -----------------------------------------------------------------------------------


def test_without_workers_it_waits_and_can_be_interrupted(farm, expected, tmp_path):
    cluster = farm(workers=0)
    states = []

    def interrupt(state):
        states.append(state)
        if len(states) == 5:
            raise KeyboardInterrupt

    def hire(state):
        states.append(state)
        if len(states) == 10:
            cluster.start_worker()

    with dask_engine(scheduler_file=cluster.file) as engine:
        with pytest.raises(KeyboardInterrupt):
            run(plan_of_many(), tmp_path, engine=engine, progress=interrupt)
        assert {state.workers for state in states[1:]} == {0}
        assert nothing_half_written(tmp_path)
        assert run(plan_of_many(), tmp_path, engine=engine, progress=hire).done == UNITS
    assert states[-1].workers == 1
    cluster.end()
    assert everything(tmp_path) == expected


@pytest.mark.parametrize("workers", amount([2], [0, 2]))
def test_a_scheduler_that_dies_ends_the_run_and_it_goes_on_elsewhere(farm, expected, tmp_path, workers, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT", 3.0)  # the time in which the client tries to reach the scheduler again
    cluster = farm(workers=workers)
    progress, _ = at([min(workers, 1)], lambda _: kill(cluster.scheduler))
    with dask_engine(scheduler_file=cluster.file) as engine:
        with pytest.raises(EngineLost) as lost:
            run(plan_of_many(), tmp_path, engine=engine, progress=progress, command="robandit run x")
        with pytest.raises(EngineLost, match="was lost"):
            run(plan_of_many(), tmp_path, engine=engine)
    cluster.end()
    done = len(os.listdir(tmp_path / "parts"))
    assert "was lost" in str(lost.value)
    assert f"Finished units are kept in {tmp_path} ({done} of {UNITS} units)" in str(lost.value)
    assert str(lost.value).endswith("To continue: robandit run x")
    assert nothing_half_written(tmp_path)
    assert os.listdir(tmp_path / "failures") == []
    outcome = run(plan_of_many(), tmp_path)
    assert (outcome.done, outcome.before) == (UNITS - done, done)
    assert everything(tmp_path) == expected


def test_an_interruption_takes_back_what_waits(two, tmp_path):
    _, engine = two

    def interrupt(_):
        raise KeyboardInterrupt

    progress, _ = at([2], interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(plan_of_many(), tmp_path, engine=engine, progress=progress)
    assert len(os.listdir(tmp_path / "parts")) == 2
    assert nothing_half_written(tmp_path)
    assert engine._client.submit(len, "abc").result(60) == 3, "the cluster is its owner's"


# --- versions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("package", "later"), [("robandit", False), ("polars", True)])
def test_workers_with_other_versions_are_rejected_by_name(farm, tmp_path, package, later):
    about = tmp_path / "other" / f"{package}-0.0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
    cluster = farm(workers=1 if later else 0)
    join, _ = at([1 if later else 0], lambda _: cluster.start_worker(path=[str(about.parent)]))
    with dask_engine(scheduler_file=cluster.file) as engine, pytest.raises(VersionSkew) as caught:
        run(small_plan(replications=4_000), tmp_path / "run", engine=engine, progress=join, command="robandit run x")
    cluster.end()
    assert f"{package} is {version(package)} here and 0.0.1 on tcp://127.0.0.1:" in str(caught.value)
    assert "numpy" not in str(caught.value)
    assert "install the same versions" in str(caught.value)
    done = len(os.listdir(tmp_path / "run" / "parts"))
    assert (done > 0) == later
    assert f"Finished units are kept in {tmp_path / 'run'} ({done} of 2000 units). To continue: robandit run x" in str(
        caught.value
    )
    assert nothing_half_written(tmp_path / "run")


def test_a_worker_looks_at_its_versions_itself():
    plan = small_plan()
    here = engines.versions()
    assert isinstance(play(plan, 0, here), Sent)
    assert isinstance(play(plan, 0, {**here, "python": ".".join(here["python"].split(".")[:2]) + ".99"}), Sent)
    for name, other in (("python", "3.99.0"), ("numba", "0.1"), ("robandit", "99.0")):
        with pytest.raises(VersionSkew, match=f"{name} is {other} here and {here[name]} on process {os.getpid()}"):
            play(plan, 0, {**here, name: other})
    assert isinstance(play(small_plan(policies=[Wrong()]), 0, here), Lapsed)


def test_versions_are_compared_once_for_a_unit(monkeypatch):
    asked = []
    monkeypatch.setattr(engines, "version_skew", lambda *args: asked.append(args))
    assert isinstance(engines.play(small_plan(), 0, engines.versions()), Sent)
    assert len(asked) == 1


def test_a_robandit_that_is_only_a_folder_is_asked_for_its_version(two, monkeypatch):
    """Robandit as a folder on the path has no package metadata, on either side."""
    _, engine = two
    here = engines.versions()["robandit"]

    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(engines, "version", unknown)
    assert engines.installed_version.__wrapped__() == here
    address = next(iter(engine._ask(engine._client.scheduler.ncores)))
    broadcast = engine._client.scheduler.broadcast

    async def forgetful(**message):
        found = await broadcast(**message)
        if message["msg"]["op"] == "versions":
            found[address]["packages"]["robandit"] = None
        return found

    monkeypatch.setattr(engine._client.scheduler, "broadcast", forgetful)
    assert engine._ask(lambda: engine._packages(address))["robandit"] == here
    monkeypatch.setattr(dask_cluster, "OWN_VERSION", "__import__('robandit_is_not_there').__version__")
    assert engine._ask(lambda: engine._packages(address))["robandit"] is None


def test_many_workers_are_not_all_named():
    skew = engines.version_skew({"numpy": "2.0"}, {f"worker-{i}": {"numpy": None} for i in range(7)})
    assert "numpy is 2.0 here and missing on worker-0, worker-1, worker-2, worker-3, worker-4 and 2 more:" in str(skew)


# --- compilation and memory -----------------------------------------------------------------------------------------


def test_each_worker_compiles_a_policy_once(farm, tmp_path):
    cluster = farm(workers=0)
    log = tmp_path / "compilations"
    cluster.start_worker(env={"ROBANDIT_CACHE_DIR": str(tmp_path / "cache")}, compilations=str(log))
    plan = small_plan(policies=[Idle()], replications=80)
    with dask_engine(scheduler_file=cluster.file) as engine:
        run(plan, tmp_path / "run", engine=engine)
        once = log.read_text().splitlines()
        assert len(once) == 1, "for twenty units"
        for pid in cluster.workers():
            kill(pid)
        run(small_plan(policies=[Idle()], replications=80, seed=8), tmp_path / "again", engine=engine)
    cluster.end()
    assert log.read_text().splitlines() == once, "the one that came after it has it from the disk"


class Instant(Executor):
    """An engine that answers immediately, and counts the answers in memory."""

    def __init__(self):
        self.kept = self.most = self.submitted = 0
        self.content = sealed(UNSEALED)

    def submit(self, function, /, *args, **kwargs):
        answer = Sent(self.content, 0.0)
        self.submitted += 1
        self.kept += 1
        self.most = max(self.most, self.kept)
        weakref.finalize(answer, self.forget)
        future = Future()
        future.set_result(answer)
        return future

    def forget(self):
        self.kept -= 1


def test_of_thousands_of_units_a_few_answers_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(Ledger, "receive", lambda *_: None)  # ten thousand times to the disk would take a minute
    executor, units = Instant(), amount(2_000, 10_000)
    outcome = run(small_plan(replications=units // 2, pulls=500), tmp_path, engine=OnExecutor(executor))
    assert outcome.done == executor.submitted == units
    assert executor.most <= AHEAD + 1
    assert executor.kept == 0


# --- bad options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing is given: give one of"),
        ({"workers": 2, "scheduler": "tcp://h:1"}, "scheduler and workers are given"),
        ({"workers": 0}, "workers = 0 must be an integer >= 1"),
        ({"workers": True}, "workers = True"),
    ],
)
def test_bad_options_are_rejected(options, message):
    with pytest.raises(InvalidInput, match=message), dask_engine(**options):
        pass


@pytest.mark.parametrize(
    "address",
    ["nonsense", "127.0.0.1", "http://127.0.0.1:8786", "inproc://1/2", "tcp://h:0", "::1:8786", ":8786", "h:99999"],
)
def test_a_malformed_address_is_rejected_at_once(address, monkeypatch):
    monkeypatch.setattr(dask_cluster, "_client", lambda _: pytest.fail("no client is made"))
    with pytest.raises(InvalidInput, match="for example tcp:") as caught, dask_engine(scheduler=address):
        pass
    assert f"scheduler = {address!r} must be HOST:PORT" in str(caught.value)


@pytest.mark.parametrize("address", ["node1:8786", "tcp://10.0.0.5:8786", "tls://h.example.org:1", "tcp://[::1]:8786"])
def test_addresses(address):
    dask_cluster._check_address(address)


def test_a_scheduler_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT", 0.2)
    with (
        pytest.raises(EngineLost, match=r"tcp://127\.0\.0\.1:1 cannot be reached"),
        dask_engine(scheduler="tcp://127.0.0.1:1"),
    ):
        pass
    file = tmp_path / "scheduler.json"
    with pytest.raises(InvalidInput, match="start the scheduler first"), dask_engine(scheduler_file=file):
        pass
    for text in ("{", json.dumps({"id": 1})):
        file.write_text(text)
        with (
            pytest.raises(InvalidInput, match="was not written by a Dask scheduler"),
            dask_engine(scheduler_file=file),
        ):
            pass


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(dask_cluster, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r'pip install "robandit\[cluster\]"'), dask_engine(workers=1):
        pass


def test_an_executor_that_was_shut_down_ends_the_run(tmp_path):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(EngineLost, match=r"takes no more work: .*\(0 of 10 units\)\. To continue, repeat the call"):
        run(small_plan(), tmp_path, engine=OnExecutor(pool))
    assert nothing_half_written(tmp_path)


def test_an_answer_that_was_damaged_on_its_way_is_asked_for_again(tmp_path):
    class Noisy(ThreadPoolExecutor):
        asked = 0

        def submit(self, function, /, *args, **kwargs):
            def damaged(number, *args):
                answer = function(*args)
                return Sent(answer.content[:-9] + b"?" + answer.content[-8:], 0.0) if number % 3 == 0 else answer

            self.asked += 1
            return super().submit(damaged, self.asked, *args, **kwargs)

    with Noisy(1) as pool:
        outcome = run(small_plan(), tmp_path, engine=OnExecutor(pool))
    assert (outcome.done, outcome.failed) == (10, ())
    assert pool.asked > 10
    assert outcome.store.results().complete
    assert not [t for t in threading.enumerate() if t.name.startswith("robandit")]
