"""The page /docs, and the interface in words from which it is made."""

import re
import shlex

import pytest

from helpers.chromium import Chromium, executable
from helpers.serving import Local
from robandit.service import docs_page
from robandit.service.interface import interface
from robandit.service.routes import ROUTES

PAGE = docs_page.page().decode()
CALLS = [call for calls in interface().topics.values() for call in calls]


def test_the_page_has_every_call_with_its_scope():
    assert {(call.method, call.path, call.scope or None) for call in CALLS} == {
        (route.method, route.path, route.scope) for route in ROUTES
    }
    for call in CALLS:
        assert f"<code>{call.path}</code>" in PAGE


def test_links_lead_to_sections_with_unique_ids():
    ids = re.findall(r' id="([^"]+)"', PAGE)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="([^"]+)"', PAGE)
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(ids)
    assert {link for link in links if not link.startswith("#")} == {"/openapi.json", "/"}


def test_the_page_needs_nothing_from_elsewhere():
    assert not re.search(r"<script|<img|<link|url\(|@import|\son\w+=", PAGE)


def test_the_examples_work_in_the_order_of_the_page(tmp_path):
    last = ("DELETE", "/v1/experiments/{name}")
    with Local(tmp_path / "robandit.db") as service:
        for call in sorted(CALLS, key=lambda call: (call.method, call.path) == last):
            words = shlex.split(call.example.replace("$URL", ""))
            method = words[1] if words[0] == "-X" else "POST" if "-d" in words else "GET"
            body = words[words.index("-d") + 1].encode() if "-d" in words else b""
            (path,) = (word for word in words if word.startswith("/"))
            assert method == call.method
            if "/v1/keys/" in path:
                continue  # the id of a key is random
            answer = service.call(method, path, body)
            assert str(answer.status) in {reply.status for reply in call.replies}, (call.example, answer.body)


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
