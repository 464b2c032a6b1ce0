"""The amount of work of tests that repeat something with other random numbers: less in `make test`, all in `make test-long`."""

import os

import pytest

LONG = bool(os.environ.get("ROBANDIT_LONG_TESTS"))
long_only = pytest.mark.skipif(not LONG, reason="`make test-long` runs it")
FRONT = bool(os.environ.get("ROBANDIT_FRONT_TESTS"))
"""Whether to run the tests of tests/front that take long or need other programs, as `make front` does."""


def amount(usual, long):
    """Return the number or the list to use in this run."""
    return long if LONG else usual
