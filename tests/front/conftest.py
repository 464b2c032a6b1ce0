"""One server for the tests of the group "front", which one process runs."""

import pytest

from helpers.serving import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with keys, and the experiment p with the arms a and b."""
    with Server(tmp_path_factory.mktemp("front") / "robandit.db", authenticate=True) as server:
        server.call("PUT", "/v1/experiments/p", {"arms": ["a", "b"]})
        yield server
