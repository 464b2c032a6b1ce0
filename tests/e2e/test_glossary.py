"""docs/glossary.md: the terms of a section are in alphabetical order, and each entry links to one page, at a title that exists."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "glossary.md").read_text(encoding="utf-8")


def anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def test_terms_are_sorted_and_not_repeated_within_a_section():
    for section in TEXT.split("\n## ")[1:]:
        terms = re.findall(r"^- \*\*(.+?)\*\*: ", section, re.MULTILINE)
        assert terms == sorted(set(terms), key=str.lower), section.splitlines()[0]
        assert len(terms) == section.count("\n- ")


def test_each_entry_links_to_a_page_and_its_title():
    for entry in re.findall(r"^- (.*(?:\n  .*)*)", TEXT, re.MULTILINE):
        links = [link for link in re.findall(r"\]\(([^)]+)\)", entry) if not link.startswith("#")]
        assert len(links) == 1, entry
        page, _, title = links[0].partition("#")
        titles = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert not title or title in map(anchor, titles), links[0]
