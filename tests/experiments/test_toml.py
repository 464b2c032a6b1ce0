"""The lines of keys and elements, compared with what the standard library reads; and values as text."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from robandit.experiments.toml import line_of, lines, toml_value

TEXT = '''# a comment with [brackets] and "quotes"
seed = 1
policies = [ # another
  "a # [ no comment", 'b ] "', """c
] , {
""",  # ] }
  [1, 2,
   3], {x = 1, "y.z" = [
  4]},
]
"quoted \\u00e9" = {x = 1, y = {z = [1]}}
a . b."c" = 2021-01-01 00:00:00
empty = ["", '', """""", [], {}]

[[tables]]
k = """four quotes""""
[tables.inner]
v = -inf
[[tables]]
k = 2
[[tables.deep]]
l = [{a = 1},
 {a = 2}]
[plain]
end = true'''


def paths(data, path=()):
    """Yield the path of every value in the data."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from paths(value, (*path, key))


def test_the_line_of_every_place():
    found = lines(TEXT)
    assert set(found) == set(paths(tomllib.loads(TEXT)))
    for path, line in {
        ("seed",): 2,
        ("policies",): 3,
        ("policies", 1): 4,
        ("policies", 2): 4,
        ("policies", 3): 7,
        ("policies", 3, 2): 8,
        ("policies", 4, "y.z"): 8,
        ("policies", 4, "y.z", 0): 9,
        ("quoted é", "y", "z", 0): 11,
        ("a", "b", "c"): 12,
        ("empty", 4): 13,
        ("tables",): 15,
        ("tables", 0, "k"): 16,
        ("tables", 0, "inner", "v"): 18,
        ("tables", 1): 19,
        ("tables", 1, "deep", 0, "l", 1, "a"): 23,
        ("plain", "end"): 25,
    }.items():
        assert found[path] == line, path


def test_windows_line_ends():
    assert lines(TEXT.replace("\n", "\r\n")) == lines(TEXT)


def test_the_nearest_place_around():
    found = lines("a = 1\nb = [\n 2, 3]")
    assert line_of(found, ("b", 7, "x")) == 2
    assert line_of(found, ("b", 1, "x")) == 3
    assert line_of(found, ("c",)) == 1
    assert line_of({}, ()) == 1


scalars = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.\"'\n ", max_size=3), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values))
def test_any_value_reads_back_and_has_its_lines(data):
    text = "".join(f"{key} = {toml_value(value)}\n" for key, value in data.items())
    assert tomllib.loads(text) == data
    found = lines(text)
    assert set(found) == set(paths(data))
    assert all(line == 1 + list(data).index(path[0]) for path, line in found.items())
