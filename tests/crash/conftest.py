import sys

import pytest

from crash.zygote import Zygote

if sys.platform != "linux":  # they read /proc, and limit the files of another process
    collect_ignore = ["test_crash.py", "test_full_disk.py", "test_once.py", "test_replicas.py"]


@pytest.fixture(scope="session")
def zygote():
    """A process that starts servers quickly. All tests that use it run in the same process, one after the other."""
    with Zygote() as zygote:
        yield zygote
