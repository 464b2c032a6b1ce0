"""The page /docs, and the examples of the reference of the service."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from helpers.chromium import Chromium, executable
from helpers.serving import Local
from robandit.service import docs_page
from robandit.service.routes import ROUTES

PAGE = docs_page.page().decode()
REFERENCE = Path(__file__).parents[2] / "docs" / "service_reference.py"


def test_the_page_has_every_call_with_its_scope():
    for route in ROUTES:
        place = PAGE.index(f"<code>{route.method} {route.path}</code>")
        if route.scope is not None:
            assert f"Needs the scope {route.scope}." in PAGE[place : PAGE.index("<table>", place)]


def test_the_page_has_every_field_of_every_body():
    for route in ROUTES:
        if route.body is not None:
            section = PAGE[PAGE.index(f'id="type-{route.body.__name__}"') :].partition("</table>")[0]
            assert re.findall(r"<td><code>(\w+)</code>", section) == list(route.body.__struct_fields__)


def test_links_lead_to_sections_with_unique_ids():
    ids = re.findall(r' id="([^"]+)"', PAGE)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="([^"]+)"', PAGE)
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(ids)
    assert {link for link in links if not link.startswith("#")} == {"/openapi.json", "/"}


def test_the_page_needs_nothing_from_elsewhere():
    assert not re.search(r"<script|<img|<link|url\(|@import|\son\w+=", PAGE)


def test_the_examples_work_in_the_order_of_the_reference(tmp_path):
    example = runpy.run_path(str(REFERENCE), run_name="reference")["example"]
    last = ("DELETE", "/v1/experiments/{name}")
    with Local(tmp_path / "robandit.db") as service:
        for route in sorted(ROUTES, key=lambda route: (route.method, route.path) == last):
            words = shlex.split(example(route).replace("$URL", ""))
            method = words[1] if words[0] == "-X" else "POST" if "-d" in words else "GET"
            body = words[words.index("-d") + 1].encode() if "-d" in words else b""
            (path,) = (word for word in words if word.startswith("/"))
            assert method == route.method
            if "/v1/keys/" in path:
                continue  # the id of a key is random
            answer = service.call(method, path, body)
            assert answer.status in route.answers, (example(route), answer.body)


@pytest.mark.skipif(executable() is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_the_screen(tmp_path, width):
    path = tmp_path / "docs.html"
    path.write_text(PAGE)
    browser = Chromium()
    try:
        browser.open(path, width=width)
        assert browser.do("return document.documentElement.scrollWidth") == width
        assert not browser.problems
    finally:
        browser.close()
