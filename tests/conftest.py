"""`make test-quick`: one case of every test, without doctests and without the longest files. And less compilation for all tests."""

import gc
import os
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.chromium import Chromium
from helpers.postgres import shared_server
from robandit.kernel import background, cache
from robandit.kernel.build import kernel_of
from robandit.kernel.cores import cores
from robandit.live import engine

HERE = Path(__file__).parent
collect_ignore = ["golden/make_0_1.py"]  # it runs with Robandit 0.1 only
# These start commands, servers, clusters or browsers, compile a lot, or play for long; every room has other tests.
LEFT_OUT = (
    "crash",
    "e2e",
    "statistical",
    "test_import.py",
    "experiments/test_killed.py",
    "experiments/test_engines.py",
    "helpers_tests",
    "kernel/test_cache.py",
    "kernel/test_contexts.py",
    "kernel/test_parts.py",
    "policies/adar/test_adar_ucb_values.py",
    "policies/test_add_a_policy.py",
    "policies/test_symmetries.py",
    "verify/test_lower_bound_pairs.py",
    "verify/test_proposition_9.py",
    "verify/test_proposition_10.py",
    "verify/test_table_1.py",
    "verify/test_theorem_4.py",
    "verify/test_theorem_6.py",
    "verify/test_theorem_7.py",
    "verify/test_theorem_8.py",
)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only the first case of each test, without slow files")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    with suppress(ImportError, AttributeError):  # it uses private names of pytest, which another version may not have
        from helpers.rewriting import rewrite_share

        rewrite_share(session.config, HERE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One process more than there are cores: many tests wait, for servers, for kills or for a clock."""
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else cores() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadgroup":
        return None
    from helpers.scheduling import Scheduling

    return Scheduling(config, log)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--quick"):
        return
    kept, dropped, seen = [], [], set()
    for item in items:
        function = item.nodeid.partition("[")[0].partition("@")[0]
        slow = not item.path.is_relative_to(HERE) or any(item.path.is_relative_to(HERE / place) for place in LEFT_OUT)
        (dropped if slow or function in seen else kept).append(item)
        seen.add(function)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


def pytest_collection_finish(session):
    """Keep the modules and thousands of tests out of garbage collections, which would look at all of them each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)  # compiling makes many objects


# A live bandit of a precompiled policy is compiled from its first round on, any other stays interpreted; decisions are the same.
# Otherwise, most of the tests' time would go into plain Python, and into code that is ready when the test is over.
_beside: list[bool] = []
_do = background._do


def _do_if_stored(job):
    try:
        wanted = bool(_beside) or kernel_of(job.entry, job.args).is_stored()
    except Exception:
        wanted = False
    if wanted:
        _do(job)


def _at_hand_or_stored(entry, args):
    found = _at_hand(entry, args)
    if found is None and not _beside:
        try:
            found = cache.loaded(kernel_of(entry, args))
        except Exception:
            return None
    return found


background._do = _do_if_stored
_at_hand, engine.at_hand = engine.at_hand, _at_hand_or_stored


@pytest.fixture
def compiles_beside():
    """Let this test compile in the background."""
    _beside.append(True)
    yield
    _beside.pop()


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests that look at pages: they are in the group "browser", which one process runs."""
    chromium = Chromium()
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server (`helpers.postgres.Server`); each process of the tests starts its own when a test asks for it first."""
    with shared_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres):
    """The URL of an empty database."""
    url = postgres.borrowed_database()
    yield url
    postgres.give_back(url)
