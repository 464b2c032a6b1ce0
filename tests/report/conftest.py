"""One browser for all tests that look at pages."""

import pytest

from helpers.chromium import Chromium


@pytest.fixture(scope="session")
def browser():
    chromium = Chromium()
    yield chromium
    chromium.close()
