"""Requests and answers as bytes: answers in parts, cut off, in chunks, and wrong ones."""

import pytest

from robandit.client.http import Address, Broken, Reader, checked_key, parsed, path_of, request
from robandit.errors import InvalidInput

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + b'{"a":"b c"}'
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n"
    + b'{"a"\r\n7\r\n:"b c"}\r\n0\r\nTrailer: 1\r\n\r\n'
)


def read(*parts):
    reader = Reader()
    for part in parts[:-1]:
        assert reader.feed(part) is None
    return reader.feed(parts[-1])


@pytest.mark.parametrize("data", [WHOLE, CHUNKED], ids=["length", "chunks"])
def test_an_answer_may_come_in_any_parts(data):
    for cut in range(1, len(data)):
        response = read(data[:cut], data[cut:])
        assert (response.status, response.body, response.reusable) == (200, b'{"a":"b c"}', True)
    assert read(*(data[i : i + 1] for i in range(len(data)))).body == b'{"a":"b c"}'


@pytest.mark.parametrize("data", [WHOLE, CHUNKED], ids=["length", "chunks"])
def test_an_answer_that_is_cut_off_is_noticed(data):
    for cut in range(len(data)):
        reader = Reader()
        if cut:
            assert reader.feed(data[:cut]) is None
        assert reader.began == (cut > 0)
        with pytest.raises(Broken, match="was closed"):
            reader.feed(b"")


def test_an_answer_without_a_length_ends_with_the_connection():
    response = read(b"HTTP/1.1 200 OK\r\n\r\n{", b"}", b"")
    assert (response.body, response.reusable) == (b"{}", False)


def test_announcements_and_empty_answers():
    assert read(b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE).status == 200
    assert read(b"HTTP/1.1 204 No Content\r\n\r\n").reusable
    assert read(b"HTTP/1.1 204 \r\n\r\n").status == 204


@pytest.mark.parametrize(
    "data",
    [
        WHOLE.replace(b"OK\r\n", b"OK\r\nConnection: Close\r\n"),
        WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        WHOLE + b"more than one answer",
    ],
)
def test_a_connection_that_ends_is_not_reused(data):
    assert not read(data).reusable


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    ],
)
def test_what_is_not_an_answer_is_refused(data):
    with pytest.raises(Broken):
        Reader().feed(data)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", Address(False, "127.0.0.1", 8000, "")),
        ("http://[::1]:8000/", Address(False, "::1", 8000, "")),
        ("https://Example.org/a/b/", Address(True, "example.org", 443, "/a/b")),
    ],
)
def test_addresses(url, expected):
    assert parsed(url) == expected
    assert parsed(expected.url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "ftp://x",
        "http://",
        "http://x:y",
        "http://x?a=b",
        "http://x#a",
        "http://x\r\ny",
        None,
        8000,
    ]
    + ["http://x/\u00e9", "http://a b", "http://user:secret@x"],
)
def test_wrong_addresses_are_refused(url):
    with pytest.raises(InvalidInput, match=r"^url") as caught:
        parsed(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "rb_1\r\nX: y", "rb_secret 1", "rb_\u00e9", 5])
def test_a_key_that_no_header_can_contain_is_refused_and_not_shown(key):
    with pytest.raises(InvalidInput, match="key must be") as caught:
        checked_key(key)
    assert "secret" not in str(caught.value)


def test_a_request():
    address = parsed("http://[::1]:8000/prefix")
    data = request(address, "rb_1", "POST", path_of("a/b \u00e9", "rewards"), b"{}")
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /prefix/v1/experiments/a%2Fb%20%C3%A9/rewards HTTP/1.1"
    assert {"Host: [::1]:8000", "Authorization: Bearer rb_1", "Content-Length: 2"} <= set(lines)
    assert body == b"{}"
    bare = request(address, None, "GET", path_of("a"), None)
    assert b"Authorization" not in bare
    assert b"Content-Length" not in bare
