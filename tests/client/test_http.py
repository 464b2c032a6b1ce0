"""Requests and answers as bytes: answers in parts, cut off, in chunks, and wrong ones."""

import pytest

from helpers.invalid import raises
from robandit.errors import InvalidInput
from robandit_client.http import (
    LONGEST_BODY,
    LONGEST_HEAD,
    Address,
    Broken,
    Reader,
    Unexpected,
    checked_key,
    parsed,
    path_of,
    request,
)

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
        WHOLE.replace(b"OK\r\n", b"OK\r\nConnection: keep-alive, Close\r\n"),
        CHUNKED.replace(b"OK\r\n", b"OK\r\nContent-Length: 11\r\n"),
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
        b"SSH-2.0",
        b"<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LONGEST_BODY + 1),
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_an_answer_is_refused(data):
    with pytest.raises(Unexpected):
        Reader().feed(data)


HEAD = b"HTTP/1.1 200 OK\r\n"
IN_CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "part", "most"),
    [
        (HEAD, b"X: y\r\n", LONGEST_HEAD),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", LONGEST_HEAD),
        (HEAD + b"\r\n", b" " * 1_000, LONGEST_BODY),
        (IN_CHUNKS, b"64;x=y\r\n" + b" " * 100 + b"\r\n", 2 * LONGEST_BODY),
        (IN_CHUNKS, b"0", LONGEST_HEAD),
        (IN_CHUNKS + b"ffffff\r\n", b" " * 1_000, LONGEST_BODY),
        (IN_CHUNKS + b"0\r\n", b"X: y\r\n", LONGEST_HEAD),
    ],
    ids=["head", "announcements", "body", "chunks", "length", "chunk", "trailers"],
)
def test_an_answer_without_an_end_is_refused(start, part, most):
    reader = Reader()
    reader.feed(start)
    with pytest.raises(Unexpected, match=r"too long|too many|without a valid length"):
        feed_again_and_again(reader, part, most // len(part) + 1)


def feed_again_and_again(reader, part, times):
    for _ in range(times):
        assert reader.feed(part) is None


def test_chunks_are_read_once():
    """Otherwise, the time would grow with the square of their number."""
    reader = Reader()
    reader.feed(IN_CHUNKS)
    for _ in range(10):
        assert reader.feed(b"1\r\n{\r\n" * 1_000 + b"1\r\n") is None
        assert len(reader._buffer) == 3
        assert reader.feed(b"}\r\n") is None
    assert reader.feed(b"0\r\n\r\n").body == (b"{" * 1_000 + b"}") * 10


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
        "ftp://x:1",
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


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://x:8000/v1", "http://x:8000"),
        ("https://x/v1/", "https://x"),
        ("http://x/v1/experiments", "http://x"),
        ("http://x/v1/experiments/e/decisions", "http://x"),
    ],
)
def test_an_address_ends_before_v1(url, bare):
    rule = "must be the address of the server without /v1, which the client adds"
    with pytest.raises(InvalidInput, match=f"^url = '{url}' {rule}; use '{bare}'$"):
        parsed(url)


@pytest.mark.parametrize("prefix", ["/v1/bandits", "/api/v1", "/v1x", "/api/v1/experiments"])
def test_a_proxy_may_have_a_path_like_ours(prefix):
    assert parsed(f"https://gateway{prefix}/").prefix == prefix


@pytest.mark.parametrize("key", ["", "rb_1\r\nX: y", "rb_secret 1", "rb_\u00e9", 5])
def test_a_key_that_no_header_can_contain_is_refused_and_not_shown(key):
    with raises(InvalidInput, parameter="key") as caught:
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
