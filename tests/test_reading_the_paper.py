"""docs/explanation/reading-the-paper.md: every item once, and "Shown by" says what the checks say of themselves."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "reading-the-paper.md"
CHECKS = ROOT / "src" / "robandit" / "verify"
ITEMS = [str(n) for n in range(1, 29)] + ["2b", "2c"]


def sections() -> list[tuple[str, str]]:
    """The items' names and texts, in the order of the page."""
    parts = re.split(r"^#{2,3} (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [(match[1], text) for title, text in pairs if (match := re.match(r"(\d+[a-z]?)\. ", title))]


def named(source: str) -> set[str]:
    """The items that a check names: every string in it that is an item's name, since they reach a finding in several ways."""
    nodes = ast.walk(ast.parse(source))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and node.value in ITEMS}


def demonstrated() -> dict[str, set[str]]:
    """For each check that is a statement, the items that it shows."""
    found = {}
    for file in sorted(CHECKS.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        key = re.search(r'^\s+key="([a-z0-9-]+)"', source, flags=re.MULTILINE)
        if key and "STATEMENT = " in source:
            found[key[1]] = named(source)
    return found


def test_every_item_stands_once() -> None:
    assert sorted(item for item, _ in sections()) == sorted(ITEMS)


@pytest.mark.parametrize("item", ITEMS)
def test_shown_by_what_shows_it(item: str) -> None:
    text = dict(sections())[item]
    lines = [line for line in text.splitlines() if line.startswith("Shown by ")]
    assert len(lines) <= 1
    claimed = re.findall(r"`robandit verify ([a-z0-9-]+)`", " ".join(lines))
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == {key for key, items in demonstrated().items() if item in items}


@pytest.mark.parametrize("item", ITEMS)
def test_each_item_says_what_is_printed_and_what_is_done(item: str) -> None:
    text = dict(sections())[item]
    assert text.count("**Printed:**") == 1
    assert len(re.findall(r"\*\*Why (?:not|it matters):\*\*", text)) == 1
    assert text.count("**Here:**") == 1


def test_checks_name_items_that_exist() -> None:
    for key, items in demonstrated().items():
        assert items <= set(ITEMS), key


def test_the_scan_sees_findings() -> None:
    assert named('Finding(claim="x 3", misprints=("2", "2b"))\ng({a: ("1", 0.5)}, "29", 7)') == {"1", "2", "2b"}
    assert demonstrated()["theorem-7"] == {"12", "13", "14"}


def test_names_in_the_page_exist() -> None:
    import robandit
    import robandit.policies
    import robandit.problems
    import robandit.theory
    from robandit.estimators import trimming_threshold

    text = PAGE.read_text(encoding="utf-8")
    for place, names in (
        (robandit.theory, ("printed_instance", "printed_worst_case", "repaired_instance", "repaired_worst_case")),
        (robandit.problems, ("eps_adaptive_pair", "lower_bound_family")),
        (robandit.policies, ("AdaRUCB", "OptTINF", "OptHTINF")),
    ):
        for name in names:
            assert f"`{name}" in text or f".{name}`" in text
            assert hasattr(place, name)
    for parameter in re.findall(r"`AdaRUCB\((\w+)=", text):
        assert hasattr(robandit.policies.AdaRUCB, parameter)
    assert trimming_threshold.__name__ in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (PAGE.parent / link).exists(), link
