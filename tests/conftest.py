"""`make test-quick`: one case of every test, without the tests that wait for other processes."""

from pathlib import Path

HERE = Path(__file__).parent
# These start commands, clusters or browsers, or play for long.
LEFT_OUT = (
    "e2e",
    "statistical",
    "experiments/test_killed.py",
    "experiments/test_engines.py",
    "kernel/test_contexts.py",
)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only the first case of each test, without slow files")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--quick"):
        return
    kept, dropped, seen = [], [], set()
    for item in items:
        function = item.nodeid.partition("[")[0].partition("@")[0]
        slow = any(item.path.is_relative_to(HERE / place) for place in LEFT_OUT)
        (dropped if slow or function in seen else kept).append(item)
        seen.add(function)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)
