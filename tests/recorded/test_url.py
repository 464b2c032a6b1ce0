"""Tables from a URL: the log of a decision service and files, the key, and everything that can go wrong on the way."""

from __future__ import annotations

import gc
import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from helpers.served import Reply, Server, served
from robandit.cli.table_options import Reading
from robandit.errors import CorruptFile, FileError, InvalidInput
from robandit.recorded import open_records, url
from robandit.recorded.url import Address, is_url

KEY = "rk_1234567890_secret"
LOG = "/v1/experiments/provider/log"
NDJSON = "application/x-ndjson"


def log(rows: int = 4, propensity: float | None = 0.5) -> bytes:
    """Learned rewards as the service sends them: arm a has the reward 0, arm b has the reward 1."""
    lines = [
        {
            "seq": 3 * i,
            "time": 1763400000.0 + i,
            "kind": "rewarded",
            "id": f"d{i}",
            "arm": "ab"[i % 2],
            "reward": i % 2,
            "learned": True,
            "propensity": propensity,
            "decided": 1763399999.0 + i,
        }
        for i in range(rows)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture(autouse=True)
def no_key_and_no_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(url.KEY, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def server() -> Iterator[Server]:
    with served({LOG: Reply(log(), NDJSON)}) as running:
        yield running


def rejection(address: str, kind: type[Exception] = FileError, **options: object) -> str:
    """Return the message; no copy stays."""
    with pytest.raises(kind) as caught:
        open_records(address, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable()
    assert KEY not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("path", ["", "/", "/log", "/log/", "/log?format=ndjson&learned=true", "#fragment"])
def test_an_experiment_means_its_learned_rewards(server: Server, path: str, tmp_path: Path) -> None:
    seen: list[int] = []
    records = open_records(f"{server.url}/v1/experiments/provider{path}", spooling=seen.append)
    assert [request for request, _ in server.requests] == [f"{LOG}?format=ndjson&learned=true"]
    assert server.keys == [None]
    assert seen == [len(log())]
    assert (records.arm, records.reward, records.time, records.propensity) == ("arm", "reward", "time", "propensity")
    assert {arm.arm: (arm.n, arm.mean) for arm in records.summary().arms} == {"a": (2, 0.0), "b": (2, 1.0)}
    assert records.log().rewards.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert not records.minimize
    assert records.source.startswith(f"{server.url}/v1/experiments/provider")
    assert "?" not in records.source
    assert len(list(tmp_path.iterdir())) == 1
    del records
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "requested", "name", "service"),
    [
        ("/v1/experiments/provider", "/v1/experiments/provider/log?format=ndjson&learned=true", "provider", True),
        ("/v1/experiments/log", "/v1/experiments/log/log?format=ndjson&learned=true", "log", True),
        ("/behind/v1/experiments/a.b", "/behind/v1/experiments/a.b/log?format=ndjson&learned=true", "a.b", True),
        ("/v1/experiments/é", "/v1/experiments/%C3%A9/log?format=ndjson&learned=true", "é", True),
        ("/v1/experiments/x%2F..%2Fy", "/v1/experiments/x%2F..%2Fy/log?format=ndjson&learned=true", "x-..-y", True),
        ("/v1/experiments/..%2F..", "/v1/experiments/..%2F../log?format=ndjson&learned=true", "recorded", True),
        ("/v1/experiments/x/log?format=csv", "/v1/experiments/x/log?format=csv", "x", True),
        ("/shop/log", "/shop/log?format=ndjson&learned=true", "shop", False),
        ("/log", "/log?format=ndjson&learned=true", "recorded", False),
        ("/v1/experiments/", "/v1/experiments/", "experiments", False),
        ("/data/waits.csv.gz?token=x", "/data/waits.csv.gz?token=x", "waits", False),
        ("/catalog", "/catalog", "catalog", False),
        ("", "", "recorded", False),
        ("/", "/", "recorded", False),
    ],
)
def test_what_a_url_means(path: str, requested: str, name: str, service: bool) -> None:
    address = Address.of(f"http://bandits.example:8000{path}")
    assert address.url == f"http://bandits.example:8000{requested}"
    assert (address.name, address.service) == (name, service)
    assert Reading().name(f"http://bandits.example:8000{path}") == name
    assert "token" not in address.source


def test_other_names_are_those_of_files(tmp_path: Path) -> None:
    assert not is_url("http.csv")
    assert not is_url(Path("http://host/x"))
    assert not is_url(3)
    assert is_url("HTTPS://host/x")
    assert Reading().name("http.csv") == "http"


@pytest.mark.parametrize(
    "bad",
    [
        "http://",
        "http://:8000/x",
        "http://host:port/x",
        "http://host:99999/x",
        "http://[::1/x",
        "http://host/a b",
        "http://host/a\nb",
        "http://host/\x1b[31m",
        "http://höst/x",
        "http://host/\ud800",
        "http://host/" + "\0" * 5,
    ],
)
def test_wrong_urls(bad: str) -> None:
    assert "path = " in rejection(bad, InvalidInput)


@pytest.mark.parametrize(
    "bad",
    [
        "http://me:hunter2@127.0.0.1:1/x.csv",
        "http://hunter2@127.0.0.1/x.csv",
        "http://a:hunter2@h:x/",
        "http://a:hunter2@h/\0",
    ],
)
def test_a_password_in_a_url_is_rejected_and_not_printed(bad: str) -> None:
    message = rejection(bad, InvalidInput)
    assert "hunter2" not in message
    assert "set ROBANDIT_KEY" in message


def test_the_key_is_sent_as_a_header(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", f" {KEY}\n")
    records = open_records(f"{server.url}/v1/experiments/provider")
    assert server.keys == [f"Bearer {KEY}"]
    assert KEY not in repr(records)
    assert KEY not in server.requests[0][0]


def test_the_key_is_not_sent_to_servers_of_files(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    server.replies["/a.csv"] = Reply(b"arm,reward\na,1\n")
    assert open_records(f"{server.url}/a.csv").summary().rows == 1
    assert server.keys == [None]


def test_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.replies[f"http://bandits.invalid{LOG}"] = Reply(log(), NDJSON)
    assert open_records("http://bandits.invalid/v1/experiments/provider").summary().rows == 4


@pytest.mark.parametrize("key", ["two words", "line\nend", "clé"])
def test_a_key_that_is_none_is_not_printed(server: Server, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", key)
    message = rejection(f"{server.url}/v1/experiments/provider", InvalidInput)
    assert "ROBANDIT_KEY" in message
    assert key.split()[0] not in message
    assert server.requests == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_does_not_get_the_key(
    server: Server, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    with served({"/x": Reply(log(), NDJSON)}) as other:
        for host in (
            other.url,
            other.url.replace("127.0.0.1", "localhost"),
            server.url.replace("127.0.0.1", "localhost"),
        ):
            server.replies["/x"] = server.replies[LOG] if host != other.url else Reply(status=401)
            server.replies["/v1/experiments/moved/log"] = Reply(status=status, headers={"location": f"{host}/x"})
            server.requests.clear()
            assert open_records(f"{server.url}/v1/experiments/moved").summary().rows == 4
            assert server.keys[0] == f"Bearer {KEY}"
            assert server.keys[1:] in ([], [None])
        assert other.keys == [None, None]


def test_a_redirect_through_another_host(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    with served({"/x": Reply(status=302, headers={"location": f"{server.url}{LOG}"})}) as other:
        server.replies["/v1/experiments/moved/log"] = Reply(status=302, headers={"location": f"{other.url}/x"})
        assert open_records(f"{server.url}/v1/experiments/moved").summary().rows == 4
        assert other.keys == [None]


def test_a_redirect_within_the_host_gets_the_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    server.replies["/v1/experiments/moved/log"] = Reply(status=307, headers={"location": LOG})
    assert open_records(f"{server.url}/v1/experiments/moved").summary().rows == 4
    assert server.keys == [f"Bearer {KEY}"] * 2


def test_a_redirect_to_a_host_that_wants_a_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    with served({"/x": Reply.problem(401)}) as other:
        server.replies[LOG] = Reply(status=302, headers={"location": f"{other.url}/x?token=y"})
        message = rejection(f"{server.url}/v1/experiments/provider")
        assert f"it redirects to {other.url}, which does not get the key (401)" in message
        assert other.keys == [None]


@pytest.mark.parametrize(
    "target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "data:,arm", "", "http://a:b@127.0.0.1/x", LOG]
)
def test_redirects_that_are_not_followed(server: Server, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    server.replies[LOG] = Reply(status=302, headers={"location": target})  # LOG leads to itself
    message = rejection(f"{server.url}/v1/experiments/provider")
    assert "cannot be" in message
    assert "root:" not in message


@pytest.mark.parametrize("header", ["true", "TRUE", "false", "", "maybe"])
def test_the_server_tells_whether_rewards_are_costs(server: Server, header: str) -> None:
    server.replies[LOG] = Reply(log(), NDJSON, headers={"robandit-minimize": header})
    address = f"{server.url}/v1/experiments/provider"
    costs = header.lower() == "true"
    records = open_records(address)
    assert records.minimize == costs
    assert {arm.arm: arm.mean for arm in records.summary().arms} == {"a": 0.0, "b": 1.0}  # in their own sign
    assert open_records(address, minimize=True).minimize
    assert not open_records(address, minimize=False).minimize
    negated = open_records(address, negate=True)
    assert (negated.negated, negated.minimize) == (True, False)
    assert Reading().records(address).minimize == costs
    assert Reading(minimize=True).records(address).minimize


def test_minimize_of_a_file_is_false_by_default() -> None:
    frame = pl.DataFrame({"arm": ["a"], "reward": [1.0]})
    assert open_records(frame).minimize is False
    with pytest.raises(InvalidInput, match="minimize"):
        open_records(frame, minimize="yes")  # type: ignore[arg-type]


def table(kind: str) -> bytes:
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [1.0, 2.0, 3.0]})
    if kind == "csv":
        return frame.write_csv().encode()
    if kind == "tsv":
        return frame.write_csv(separator="\t").encode()
    content = io.BytesIO()
    (frame.write_parquet if kind == "parquet" else frame.write_ndjson)(content)
    return content.getvalue()


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    ("kind", "path", "content"),
    [
        ("text/csv; charset=utf-8", "/x", "csv"),
        ("text/tab-separated-values", "/x", "tsv"),
        ("application/vnd.apache.parquet", "/x", "parquet"),
        ("application/x-ndjson", "/x", "jsonl"),
        ("application/octet-stream", "/x.csv", "csv"),
        ("application/octet-stream", "/x.parquet?v=1", "parquet"),
        ("text/plain", "/x.ndjson", "jsonl"),
        ("", "/x.tsv", "tsv"),
        ("", "/x", "csv"),
        ("", "/x", "parquet"),
        ("", "/x", "jsonl"),
        ("text/csv", "/x.json", "csv"),  # the type comes first
    ],
)
def test_files(server: Server, kind: str, path: str, content: str, framing: str) -> None:
    server.replies[path.partition("?")[0]] = Reply(table(content), kind, framing=framing)  # type: ignore[arg-type]
    records = open_records(server.url + path)
    assert {arm.arm: arm.mean for arm in records.summary().arms} == {"a": 2.0, "b": 2.0}


def test_a_file_that_is_not_what_its_type_says(server: Server) -> None:
    server.replies["/x"] = Reply(b"arm,reward\na,1\n", "application/vnd.apache.parquet")
    assert "not a Parquet file" in rejection(f"{server.url}/x", CorruptFile)
    server.replies["/x.csv"] = Reply(b"<html>", "text/html; charset=utf-8")
    assert "is a web page, not a table" in rejection(f"{server.url}/x.csv", InvalidInput)


def test_a_host_that_cannot_be_reached() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        message = rejection(f"http://127.0.0.1:{bound.getsockname()[1]}/v1/experiments/provider")
    assert "/v1/experiments/provider cannot be reached: " in message
    assert "refused; check the URL, and that the server is running" in message
    assert "cannot be reached" in rejection("http://name.invalid/v1/experiments/provider")


def test_a_server_that_does_not_speak_http(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(b"\x1b[31m" + b"x" * 1000 + b"\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}/v1/experiments/provider"
        assert "cannot be reached" in rejection(f"http://{address}")
        assert "cannot be reached" in rejection(f"https://{address}")
        thread.join()


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("key", [None, KEY])
def test_no_access(server: Server, monkeypatch: pytest.MonkeyPatch, status: int, key: str | None) -> None:
    if key is not None:
        monkeypatch.setenv("ROBANDIT_KEY", key)
    server.replies[LOG] = server.replies["/x.csv"] = Reply.problem(status, title="no", detail=f"the key {KEY} is wrong")
    message = rejection(f"{server.url}/v1/experiments/provider")
    assert message.endswith(f"denies access ({status}); set ROBANDIT_KEY to a key with the scope read")
    assert message.startswith(f"{server.url}/v1/experiments/provider cannot be read: ")
    assert "ROBANDIT_KEY" not in rejection(f"{server.url}/x.csv")


def test_an_unknown_experiment(server: Server) -> None:
    message = rejection(f"{server.url}/v1/experiments/other")
    assert message.endswith("the server does not have it (404); check the name of the experiment")
    assert rejection(f"{server.url}/other.csv").endswith("the server does not have it (404); check the URL")


def test_other_problems(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBANDIT_KEY", KEY)
    address = f"{server.url}/v1/experiments/provider"
    detail = "the store is read-only"
    server.replies[LOG] = Reply.problem(503, title="Unavailable", status=503, detail=detail)
    assert rejection(address).endswith(f"the server answers 503 ({detail}); try again later")
    server.replies[LOG] = Reply.problem(422, title="Wrong format", status=422)
    assert rejection(address).endswith("the server answers 422 (Wrong format); check the URL")
    server.replies[LOG] = Reply.problem(500, detail=f"the request had Bearer {KEY}")
    assert "the request had Bearer ..." in rejection(address)
    server.replies[LOG] = Reply(log(), NDJSON, status=206)
    assert "answers 206, not 200" in rejection(address)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"detail": 7}',
        b'{"detail": ["a"]}',
        b'{"title": {}}',
        b"\xff\xfe",
        b"<html>no</html>",
        b"[" * 60_000,
        b'{"detail": "' + b"x" * 100_000,
        b'{"detail": " "}',
    ],
    ids=range(11),
)
def test_problems_that_cannot_be_read(server: Server, body: bytes) -> None:
    server.replies[LOG] = Reply(body, "application/problem+json", 500)
    assert rejection(f"{server.url}/v1/experiments/provider").endswith("the server answers 500; try again later")


@pytest.mark.parametrize(
    "detail",
    [
        "\x1b[2J\x1b]0;owned\x07",
        "one\nrobandit: two\r\n\tthree",
        "right\u202eto left\u2066\u200b",
        "\ud800",
        "[red]bold[/red] {0} %s",
        "x" * 5000,
        "\x1b" * 5000,
    ],
    ids=range(7),
)
def test_hostile_text_in_a_problem(server: Server, detail: str) -> None:
    server.replies[LOG] = Reply.problem(500, detail=detail)
    message = rejection(f"{server.url}/v1/experiments/provider")  # which is printable, and short
    assert message.endswith("); try again later")
    assert len(message.partition("answers 500 (")[2]) <= 200 + len("); try again later")


@pytest.mark.parametrize("path", ["/v1/experiments/provider", "/x.csv", "/x.parquet"])
@pytest.mark.parametrize("framing", ["cut length", "cut chunk", "cut chunks"])
@pytest.mark.parametrize("rows", [1, 30_000])
def test_a_connection_that_is_cut(server: Server, path: str, framing: str, rows: int, tmp_path: Path) -> None:
    """The content would be a table without its last bytes, or (cut chunks) without its last line."""
    content = log(rows)
    for each in (LOG, "/x.csv", "/x.parquet"):
        server.replies[each] = Reply(content, framing=framing)  # type: ignore[arg-type]
    message = rejection(server.url + path)
    assert "cannot be read: the connection was cut after " in message
    assert message.endswith("bytes, and a part of a table is not used; try again")
    if framing == "cut length":
        assert f"after {len(content) - 5:,} of {len(content):,} bytes" in message
    assert list(tmp_path.iterdir()) == []


def test_an_answer_without_an_end(server: Server, tmp_path: Path) -> None:
    server.replies[LOG] = Reply(log(), NDJSON, framing="close")
    assert "does not say where the table ends" in rejection(f"{server.url}/v1/experiments/provider")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_silent(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(url, "SECONDS", 0.3)
    server.replies[LOG] = Reply(framing="silence")
    assert "cannot be reached: no answer within" in rejection(f"{server.url}/v1/experiments/provider")
    server.replies[LOG] = Reply(log(), NDJSON, framing="silence")
    assert "cannot be read: no data for" in rejection(f"{server.url}/v1/experiments/provider")
    assert list(tmp_path.iterdir()) == []


def test_the_timeout_is_half_a_minute() -> None:
    assert url.SECONDS == 30.0


@pytest.mark.parametrize("reply", [Reply(b"", NDJSON), Reply(b"", NDJSON, framing="chunked"), Reply(status=204)])
def test_an_empty_log(server: Server, reply: Reply, tmp_path: Path) -> None:
    server.replies[LOG] = server.replies["/x.csv"] = reply
    message = rejection(f"{server.url}/v1/experiments/provider", InvalidInput)
    assert message.endswith("/provider has no learned rewards yet: send rewards first, then try again")
    assert "is empty (0 bytes)" in rejection(f"{server.url}/x.csv", InvalidInput)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_not_the_servers_fault(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, content: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("robandit.recorded.source.os.fdopen", lambda handle, mode: Full())
    assert "free space there" in rejection(f"{server.url}/v1/experiments/provider")


def test_an_error_in_a_row_names_the_url_and_the_line(server: Server) -> None:
    server.replies[LOG] = Reply(log(2) + b'{"arm": "a"}\n', NDJSON)
    with pytest.raises(InvalidInput, match=r"/v1/experiments/provider has 1 bad row: line 3: the reward is missing"):
        open_records(f"{server.url}/v1/experiments/provider").summary()


@pytest.mark.parametrize("rows", [4, 300])
def test_a_log_without_propensities(server: Server, rows: int, tmp_path: Path) -> None:
    """A policy without random choices has none: the column is there, and empty."""
    server.replies[LOG] = Reply(log(rows, propensity=None), NDJSON)
    address = f"{server.url}/v1/experiments/provider"
    records = open_records(address)
    assert records.propensity is None
    assert records.log().propensities is None
    assert open_records(address, reward="reward", one_arm="all").samples().counts == {"all": rows}
    with pytest.raises(InvalidInput, match="the propensity is missing"):
        open_records(address, propensity="propensity").log()
    server.replies[LOG] = Reply(
        log(rows, propensity=None) + log(1), NDJSON
    )  # some rows have one: nothing is dropped silently
    mixed = open_records(address)
    assert mixed.propensity == "propensity"
    with pytest.raises(InvalidInput, match="the propensity is missing"):
        mixed.log()
    assert open_records(address, where="propensity is not null").log().propensities.tolist() == [0.5]  # type: ignore[union-attr]


def test_urllib_is_imported_only_for_urls() -> None:
    code = "import sys, robandit.recorded.source; print('urllib.request' in sys.modules, 'ssl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"
