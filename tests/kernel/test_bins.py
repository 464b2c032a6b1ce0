import math

import pytest

from robandit.kernel.bins import bin_of, edge


# The reference values of the research: ceil(log x / log gamma).
@pytest.mark.parametrize(
    ("x", "i"), [(0.001, -345), (0.5, -34), (1.0, 0), (1.0203, 2), (30.0, 171), (1_000_000.0, 691)]
)
def test_reference_bins(x, i):
    assert bin_of(x) == i


def test_every_edge_belongs_to_its_bin_and_the_next_number_to_the_next_bin():
    for i in range(-16_000, 16_000, 7):
        assert bin_of(edge(i)) == i
        assert bin_of(math.nextafter(edge(i), math.inf)) == i + 1
