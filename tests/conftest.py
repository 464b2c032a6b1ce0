"""`make test-quick`: one case of every test, without doctests and without the longest files."""

from pathlib import Path

HERE = Path(__file__).parent
# These start commands, clusters or browsers, compile a lot, or play for long; every room has other tests.
LEFT_OUT = (
    "e2e",
    "statistical",
    "test_import.py",
    "experiments/test_killed.py",
    "experiments/test_engines.py",
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
