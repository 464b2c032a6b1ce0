"""Download tables of recorded rewards: the log of an experiment of a decision service, or a file on a web server."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from robandit.errors import FileError, InvalidInput
from robandit.files import reason, shown
from robandit.validation import invalid
from robandit.wording import visible

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector, Request

KEY = "ROBANDIT_KEY"
"""The environment variable with the key of a decision service."""
SECONDS = 30.0  # to connect, and between two pieces of the answer
LEARNED = "format=ndjson&learned=true"
RULE = "a URL such as http://127.0.0.1:8000/v1/experiments/NAME"
EXPERIMENT = re.compile(r".*/v1/experiments/([^/]+)(/log)?")
ENDINGS = {
    **dict.fromkeys(("text/csv", "application/csv"), ".csv"),
    "text/tab-separated-values": ".tsv",
    **dict.fromkeys((f"application/{each}" for each in ("x-ndjson", "ndjson", "jsonl", "x-jsonlines")), ".jsonl"),
    **dict.fromkeys((f"application/{each}" for each in ("vnd.apache.parquet", "parquet", "x-parquet")), ".parquet"),
}
"""The endings of files for content types. Other types say nothing about a table."""


def is_url(path: object) -> TypeGuard[str]:
    """Return whether this is text that starts with http:// or https://."""
    return isinstance(path, str) and re.match("https?://", path, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Address:
    """The URL of a table, and its name in messages, which lacks the query: it may hold a secret."""

    url: str
    source: str
    service: bool
    """Whether the URL belongs to a decision service. Other servers never get the key."""
    name: str
    """The name of the experiment or file. It can be the name of a folder."""

    @classmethod
    def of(cls, url: str) -> Address:
        """Check a URL. The URL of an experiment, or of a log without a query, becomes that of its learned rewards."""
        try:
            parts = urlsplit(url)
            secret = "@" in parts.netloc
            valid = parts.hostname and parts.port != 0 and parts.netloc.isascii() and not re.search(r"\s", url)
            path, query = (quote(part, safe=string.punctuation) for part in (parts.path, parts.query))
        except ValueError:  # a wrong port, a wrong IPv6 address, or a lone surrogate
            secret = "@" in url
            valid = path = query = ""
        if secret:
            raise InvalidInput(
                f"path is a URL with a user name or password: it must be {RULE}; omit them, and set {KEY} to the key",
                parameter="path",
            )
        if not valid or not url.isprintable():
            raise invalid("path", url, RULE, hint="correct the URL")
        path = path.rstrip("/")
        experiment = EXPERIMENT.fullmatch(path)
        is_log = bool(experiment[2]) if experiment else path.endswith("/log")
        *_, folder, last = ["", *path.split("/")]
        name = unquote(experiment[1] if experiment else folder if is_log else last.split(".")[0])
        place = parts.scheme, parts.netloc
        source = shown(urlunsplit((*place, parts.path, "", "")))
        if (experiment or is_log) and not query:
            path, query = path if is_log else f"{path}/log", LEARNED
        elif parts.path.endswith("/"):
            path += "/"
        return cls(
            urlunsplit((*place, path, query, "")),
            source,
            experiment is not None,
            re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "recorded",
        )


class Answer:
    """The table that a server sends, as a stream. `read` raises `FileError` if the connection is cut.

    `ending` is the ending of a file with this content, "" if unknown. `minimize` is whether the values are costs, None if the
    server does not tell.
    """

    def __init__(self, response: HTTPResponse, address: Address) -> None:
        """Check the headers, without reading the content."""
        self._response, self._address, self._size = response, address, 0
        kind = response.headers.get_content_type()
        if response.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            raise FileError(
                f"{address.source} cannot be read: the server answers {response.status}, not 200; check the URL"
            )
        if kind == "text/html":
            raise InvalidInput(
                f"{address.source} is a web page, not a table: name the URL of a CSV, Parquet or JSON lines file"
            )
        if response.length is None and not response.chunked:
            raise FileError(
                f"{address.source} cannot be read: the server does not say where the table ends, so a lost end would go unnoticed; "
                "download it with another program, and name the file"
            )
        ending = re.search(r"(\.[a-z0-9]{1,10}){1,2}$", urlsplit(address.url).path, re.IGNORECASE)
        self.ending = ENDINGS.get(kind) or (ending[0] if ending else "")
        minimize = response.headers.get("robandit-minimize", "").strip().lower()
        self.minimize = {"true": True, "false": False}.get(minimize)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``, and b"" at the end."""
        from http.client import HTTPException

        left = self._response.length  # None if the encoding is chunked, which marks its end
        try:
            block = self._response.read(size)
        except TimeoutError as error:
            raise self._cut(f"no data for {SECONDS:.0f} seconds") from error
        except (OSError, HTTPException, ValueError) as error:
            raise self._cut("the connection was cut") from error
        if not block and left:
            raise self._cut("the connection was cut", f" of {self._size + left:,}")
        self._size += len(block)
        if not self._size and self._address.service:
            raise InvalidInput(f"{self._address.source} has no learned rewards yet: send rewards first, then try again")
        return block

    def _cut(self, cause: str, total: str = "") -> FileError:
        received = f"{cause} after {self._size:,}{total} bytes, and a part of a table is not used"
        return FileError(f"{self._address.source} cannot be read: {received}; try again")


@contextmanager
def download(address: Address) -> Iterator[Answer]:
    """Request a table. The key is sent only to the host of the URL."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request

    key = key_given() if address.service else None
    request = Request(address.url, headers={"User-Agent": "robandit"})
    try:
        response = opener_with(request, key).open(request, timeout=SECONDS)
    except HTTPError as error:
        with error:
            raise _refusal(address, error, key) from None
    except (OSError, HTTPException, ValueError) as error:
        raise FileError(
            f"{address.source} cannot be reached: {_cause(error)}; check the URL, and that the server is running"
        ) from error
    with response:
        yield Answer(response, address)


def _cause(error: Exception) -> str:
    cause = getattr(error, "reason", error)  # of URLError
    if isinstance(cause, TimeoutError):
        return f"no answer within {SECONDS:.0f} seconds"
    return reason(cause) if isinstance(cause, OSError) else visible(str(cause) or type(cause).__name__)[:200]


def key_given() -> str | None:
    """Return the key in the environment variable `KEY`, or None."""
    key = os.environ.get(KEY, "").strip()
    if not re.fullmatch("[!-~]*", key):  # http.client would print it in its error
        raise InvalidInput(f"{KEY} has blanks or characters that are not ASCII: it must be a key; set it again")
    return key or None


def opener_with(request: Request, key: str | None) -> OpenerDirector:
    """Return an opener for HTTP and HTTPS that sends the key with this request, and after redirects within its host."""
    from urllib import request as web

    own = request.type, request.host

    def authorize(request: Request) -> None:
        if key is not None and (request.type, request.host) == own:
            request.add_unredirected_header("Authorization", f"Bearer {key}")

    class Redirects(web.HTTPRedirectHandler):
        def redirect_request(self, *args: Any) -> Request | None:
            following = super().redirect_request(*args)
            if following is not None:
                authorize(following)
            return following

    authorize(request)
    opener = web.OpenerDirector()
    handlers = web.ProxyHandler, web.HTTPHandler, web.HTTPSHandler, web.HTTPDefaultErrorHandler, web.HTTPErrorProcessor
    for handler in (*handlers, web.UnknownHandler, Redirects):
        opener.add_handler(handler())
    return opener


def _refusal(address: Address, error: HTTPError, key: str | None) -> FileError:
    """Return an error for an answer other than a table."""
    status = error.code
    elsewhere = urlsplit(error.url)[:2] != urlsplit(address.url)[:2]
    denied = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    if denied and elsewhere and key is not None:
        host = visible(urlunsplit((*urlsplit(error.url)[:2], "", "", "")))[:100]
        text = f"it redirects to {host}, which does not get the key ({status}); if you trust that host, name its URL"
    elif denied:
        key_hint, file_hint = (
            f"set {KEY} to a key with the scope read",
            "download it with another program, and name the file",
        )
        text = f"the server denies access ({status}); {key_hint if address.service else file_hint}"
    elif status == HTTPStatus.NOT_FOUND:
        text = f"the server does not have it (404); check the {'name of the experiment' if address.service else 'URL'}"
    else:
        advice = "try again later" if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS else "check the URL"
        text = f"the server answers {status}{_detail(error, key)}; {advice}"
    return FileError(f"{address.source} cannot be read: {text}")


def _detail(error: HTTPError, key: str | None) -> str:
    """Return the detail or title of a problem (RFC 9457) in parentheses: at most 200 characters, without the key."""
    try:
        problem = json.loads(error.read(1 << 16))
        text = " ".join((problem.get("detail") or problem.get("title")).split())
    except Exception:  # cut, too deep, no JSON, or other fields: the status must suffice
        return ""
    if key is not None:
        text = text.replace(key, "...")
    text = visible(text)
    return f" ({text if len(text) <= 200 else text[:196] + ' ...'})" if text else ""
