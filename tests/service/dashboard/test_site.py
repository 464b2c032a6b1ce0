"""Who sees and changes what on the dashboard: sessions, scopes, forms, and requests from other sites."""

import asyncio
import itertools
import re
import time
from urllib.parse import quote

import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person, words
from robandit.service import sessions
from robandit.service.access import made_key
from robandit.service.dashboard.pages import PAGES

SETTINGS = {"arms": ["a", "b"]}
# Written by hand: the scope that each page needs, None if it needs no login. A new page fails until it is here.
EXPECTED = {
    "GET /": "read",
    "GET /live": "read",
    "GET /new": "admin",
    "POST /new": "admin",
    "GET /experiments/{name}": "read",
    "GET /experiments/{name}/live": "read",
    "POST /experiments/{name}/change": "admin",
    "GET /experiments/{name}/decision": "read",
    "GET /login": None,
    "POST /login": None,
    "POST /logout": "read",
    "GET /assets/{file}": None,
}
PEOPLE = ("nobody", *(f"{scope}, {limit}" for scope in ("read", "admin") for limit in ("all", "mine", "other")))


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("site") / "robandit.db", authenticate=True) as local:
        for name in ("mine", "other"):
            local.call("PUT", f"/v1/experiments/{name}", SETTINGS)
        local.call("POST", "/v1/experiments/mine/decisions", {"id": "known"})
        yield local


@pytest.fixture(scope="module")
def people(local):
    made = {"nobody": Person(local)}
    for scope, limit in itertools.product(("read", "admin"), ("all", "mine", "other")):
        key, stored = made_key([scope], now=time.time(), experiments=None if limit == "all" else [limit])
        local.service.state.keys.put(stored)
        made[f"{scope}, {limit}"] = person = Person(local)
        assert person.log_in(key).status == 303
    return made


@pytest.fixture
def admin(local):
    person = Person(local)
    person.log_in(local.admin)
    return person


def test_the_table_has_every_page():
    assert sorted(EXPECTED) == sorted(f"{page.method} {page.path}" for page in PAGES)


def is_allowed(page, who):
    if EXPECTED[page] is None:
        return True
    if who == "nobody":
        return False
    scope, limit = who.split(", ")
    return scope in (EXPECTED[page], "admin") and ("{name}" not in page or limit in ("all", "mine"))


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("page", [page for page in EXPECTED if "live" not in page and "logout" not in page])
def test_matrix(local, people, page, who):
    person = people[who]
    method, path = page.split()
    path = path.format(name="mine", file="dashboard.css") + ("?id=known" if path.endswith("decision") else "")
    form = None
    if method == "POST":
        form = {"name": f"mine-{who[:4]}", "arms": "x\ny", "action": "add-arm", "arm": f"new {who}", "key": "wrong"}
        if who != "nobody":
            form["token"] = re.search(r'name="token" value="([^"]+)"', person.get("/").body.decode())[1]

    def seen():
        return {each.name: each.seq for each in local.engine.experiments.values()}, len(
            local.engine.reader.audit(0, 10**6)
        )

    before = seen()
    answer = person.ask(method, path, form)
    if not is_allowed(page, who):
        assert seen() == before
        assert answer.status == (403 if who != "nobody" else 303 if method == "GET" else 401)
        if answer.status == 303:
            assert answer.headers["location"] == f"/login?next={quote(path, safe='/')}"
        else:
            assert "text/html" in answer.headers["content-type"]
    elif page == "POST /login":
        assert answer.status == 401
    elif page == "POST /new" and not who.endswith("all"):  # a limited key makes only experiments of its own
        assert answer.status == 403
        assert seen() == before
    elif method == "POST":
        assert answer.status == 303
        assert seen() != before
    else:
        assert answer.status == (303 if page == "GET /login" and who != "nobody" else 200)


def test_a_reader_sees_no_forms_for_changes(people):
    page = people["read, all"].get("/experiments/mine").body.decode()
    assert re.findall(r'<form[^>]* method="post" action="([^"]+)"', page) == ["/logout"]
    assert "/new" not in page
    admins = people["admin, mine"].get("/experiments/mine").body.decode()
    assert "/experiments/mine/change" in admins


def test_a_limited_person_sees_their_experiments_only(people):
    assert "other" not in words(people["read, mine"].get("/").body)
    text = words(people["read, all"].get("/").body)
    assert "mine" in text
    assert "other" in text


# --- sessions -----------------------------------------------------------------------------------------------------------------


def test_the_cookie_holds_a_random_token_and_not_the_key(local):
    person = Person(local)
    answer = person.log_in(local.admin)
    name, _, rest = answer.headers["set-cookie"].partition("=")
    token, *attributes = rest.split("; ")
    assert name == "robandit"
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"}
    assert len(token) == 43
    assert token not in local.admin
    assert not any(part in token for part in local.admin.split("_", 2)[1:])
    again = Person(local)
    again.log_in(local.admin)
    assert again.cookie != person.cookie


def test_over_tls_the_cookie_is_sent_over_tls_only(local):
    host = "bandit.example"
    assert "Secure" in Person(local, host=host, origin=f"https://{host}").log_in(local.admin).headers["set-cookie"]
    assert "Secure" not in Person(local, host=host, origin=f"http://{host}").log_in(local.admin).headers["set-cookie"]


def test_servers_on_other_ports_have_other_cookies(local):
    names = [Person(local, host=host).log_in(local.admin).headers["set-cookie"].partition("=")[0]
             for host in ("127.0.0.1:8000", "127.0.0.1:8001", "bandit.example", "[::1]:8000")]  # fmt: skip
    assert names == ["robandit-8000", "robandit-8001", "robandit", "robandit-8000"]


@pytest.mark.parametrize(
    "key", ["", "wrong", "rb_000000000000_secret", "\u4e16", "rb_x\r\nSet-Cookie: a=b", "x" * 10_000]
)
def test_a_wrong_key_is_refused_in_words(local, key):
    person = Person(local)
    answer = person.log_in(key)
    assert (answer.status, person.cookie) == (401, "")
    assert "The key is not known: copy the whole key" in words(answer.body)
    assert "Authorization" not in words(answer.body)
    assert not key or key not in words(answer.body)


def test_a_key_that_may_not_read_cannot_log_in(local):
    key, stored = made_key(["decide", "reward"], now=time.time())
    local.service.state.keys.put(stored)
    answer = Person(local).log_in(key)
    assert answer.status == 403
    assert "lacks the scope read" in words(answer.body)


def test_a_session_ends_when_its_key_is_revoked(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        made = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json
        local.call("PUT", "/v1/experiments/p", SETTINGS)
        person = Person(local)
        person.log_in(made["key"])
        assert person.get("/experiments/p").status == 200
        with person.stream("/experiments/p/live") as stream:
            assert stream.next()[0] == "message"
            local.call("DELETE", f"/v1/keys/{made['id']}")
            while (event := stream.next())[0] != "end":
                pass
            assert event == ("end", None)
            assert stream.next() is None
        answer = person.get("/experiments/p")
        assert answer.headers["location"] == "/login?next=/experiments/p&ended=yes"
        assert "session has ended" in words(person.get(answer.headers["location"]).body)
        with person.stream("/experiments/p/live") as stream:
            assert stream.status == 401


def test_a_session_ends_with_its_key_and_after_twelve_hours(tmp_path):
    clock = Clock()
    with Local(tmp_path / "robandit.db", authenticate=True, clock=clock) as local:
        short = local.call("POST", "/v1/keys", {"scopes": ["read"], "expires_in": 60.0}).json
        visitor, admin = Person(local), Person(local)
        visitor.log_in(short["key"])
        admin.log_in(local.admin)
        clock.now += 59.0
        assert visitor.get("/").status == 200
        clock.now += 1.0
        assert visitor.get("/").status == 303
        clock.now += sessions.LIFETIME - 60.1
        assert admin.get("/").status == 200
        clock.now += 0.1
        assert admin.get("/").status == 303


def test_logging_out_ends_the_session(local, admin):
    with admin.stream("/live") as stream:
        stream.next()
        before = admin.cookie
        answer = admin.send("/", "/logout", {})
        assert (answer.status, answer.headers["location"]) == (303, "/login")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        while stream.next()[0] != "end":
            pass
    admin.cookie = before
    assert admin.get("/").status == 303


def test_logging_in_again_ends_the_session_before(local, admin):
    before = admin.cookie
    admin.log_in(local.admin)
    old = Person(local)
    old.cookie = before
    assert old.get("/").status == 303
    assert admin.get("/").status == 200


def opened(known, key):
    token = sessions.new_token()
    known.apply(known.opening(token, key, 0.0))
    return token


def test_the_number_of_sessions_is_limited(monkeypatch):
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    known = sessions.Sessions([])
    tokens = [opened(known, "k") for _ in range(4)]
    assert [known.find(token, 1.0) is not None for token in tokens] == [False, True, True, True]
    assert known.find("", 1.0) is None
    assert len({sessions.form_token(token) for token in tokens}) == 4


def test_a_key_cannot_end_the_sessions_of_others(monkeypatch):
    monkeypatch.setattr(sessions, "MOST_PER_KEY", 3)
    known = sessions.Sessions([])
    other = opened(known, "other")
    tokens = [opened(known, "k") for _ in range(10)]
    assert known.find(other, 1.0) is not None
    assert [known.find(token, 1.0) is not None for token in tokens] == [False] * 7 + [True] * 3


def test_a_session_lasts_when_the_server_starts_again(tmp_path):
    path = tmp_path / "robandit.db"
    with Local(path, authenticate=True) as local:
        stays, leaves = Person(local), Person(local)
        for person in (stays, leaves):
            person.log_in(local.admin)
        ended = leaves.cookie
        leaves.send("/", "/logout", {})
    assert stays.cookie.partition("=")[2].encode() not in path.read_bytes()
    with Local(path, authenticate=True) as again:
        stays.local = leaves.local = again
        leaves.cookie = ended
        assert (stays.get("/").status, leaves.get("/").status) == (200, 303)


def test_logging_in_counts_towards_the_rate(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True, rate=2.0, tick=Clock(0.0)) as local:
        assert [Person(local).log_in(local.admin).status for _ in range(3)] == [303, 303, 429]


@pytest.mark.parametrize(
    "cookie",
    ["", "robandit", "robandit=", "robandit=x", "other=1; robandit=\u00e9", "a=\x00", ";;;", "robandit=" + "x" * 5000],
)
def test_odd_cookies_are_nobodys(local, cookie):
    assert Person(local).get("/", cookie=cookie.encode().decode("latin-1")).status == 303


@pytest.mark.parametrize(
    "other", ['foo={"a":1}', "foo=a b", "a@b=1", "a/b=1", "justvalue", "=x", "robandit2=y", "\u00e9=1"]
)
def test_odd_cookies_of_other_programs_do_no_harm(local, admin, other):
    for cookie in (f"{other}; {admin.cookie}", f"{admin.cookie}; {other}", f"{other};{admin.cookie}"):
        assert admin.get("/", cookie=cookie.encode().decode("latin-1")).status == 200


def test_a_revoked_or_expired_key_cannot_log_in(local):
    for change in ({"revoked": 1.0}, {"expires": 1.0}):
        key, stored = made_key(["read"], now=0.0)
        local.service.state.keys.put(stored._replace(**change))
        answer = Person(local).log_in(key)
        assert answer.status == 401
        assert "is revoked or has expired" in words(answer.body)


# --- where to go after logging in ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "there"),
    [
        ("/experiments/mine?window=1h", True),
        ("/", True),
        ("//evil.example", False),
        ("/\\evil.example", False),
        ("https://evil.example", False),
        ("javascript:alert(1)", False),
        ("/x\r\nset-cookie: a=b", False),
        ("/\tevil", False),
        ("", False),
    ],
)
def test_logging_in_never_leads_elsewhere(local, goal, there):
    answer = Person(local).log_in(local.admin, next=goal)
    assert (answer.status, answer.headers["location"]) == (303, goal if there else "/")
    page = Person(local).get(f"/login?next={quote(goal)}").body.decode()
    assert "<script>" not in page


def test_the_way_back_has_its_query(local):
    answer = Person(local).get("/experiments/mine?window=1h")
    assert answer.headers["location"] == "/login?next=/experiments/mine%3Fwindow%3D1h"
    form = Person(local).get(answer.headers["location"]).body.decode()
    assert 'name="next" value="/experiments/mine?window=1h"' in form


# --- other sites --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", "wrong", "x" * 43, "\u00e9"])
def test_a_form_needs_the_token_of_the_session(local, admin, token):
    form = {"action": "pause"} | ({} if token is None else {"token": token})
    answer = admin.ask("POST", "/experiments/mine/change", form)
    assert answer.status == 403
    assert "reload the page" in words(answer.body)
    assert not local.engine.experiments["mine"].paused


def test_the_token_of_another_session_is_not_accepted(local, admin):
    other = Person(local)
    other.log_in(local.admin)
    form = {"action": "pause", "token": other.token("/")}
    assert admin.ask("POST", "/experiments/mine/change", form).status == 403
    assert not local.engine.experiments["mine"].paused


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_forms_of_other_sites_are_refused(local, admin, site):
    form = {"action": "pause", "token": admin.token("/")}
    assert admin.ask("POST", "/experiments/mine/change", form, sec_fetch_site=site).status == 403
    assert Person(local).ask("POST", "/login", {"key": local.admin}, sec_fetch_site=site).status == 403
    assert not local.engine.experiments["mine"].paused


@pytest.mark.parametrize("origin", ["http://evil.example", "https://evil.example", "null", "http://127.0.0.1:9"])
def test_without_sec_fetch_site_the_origin_decides(local, admin, origin):
    """Browsers send that header only over TLS, and to this machine."""
    assert Person(local).ask("POST", "/login", {"key": local.admin}, origin=origin).status == 403
    form = {"action": "pause", "token": admin.token("/")}
    assert admin.ask("POST", "/experiments/mine/change", form, origin=origin).status == 403
    assert Person(local).ask("POST", "/login", {"key": local.admin}, origin="http://127.0.0.1").status == 303


def test_large_bodies_need_a_session(local, admin):
    large = {"key": "x" * 20_000}
    assert Person(local).ask("POST", "/login", large).status == 413
    assert Person(local).ask("POST", "/new", large).status == 401
    assert admin.ask("POST", "/new", {"name": "x" * (5 << 20)}).status == 413
    assert local.service._bodies.bytes == 0


def test_a_form_is_not_read_before_the_session_is_checked(local):
    async def receive():
        raise AssertionError("the body was read")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": b"/new",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }
    local.run(asyncio.wait_for(local.service(scope, receive, send), 10))
    assert sent[0]["status"] == 401


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_other_bodies_are_refused(local, admin, kind):
    answer = admin.ask("POST", "/new", {"name": "x", "token": admin.token("/")}, content_type=kind)
    assert answer.status == 400
    assert "x" not in local.engine.experiments


def test_a_link_of_another_site_finds_the_session(local, admin):
    """The browser keeps a strict cookie back at first, and sends it when the page asks for itself."""
    first = Person(local).get("/experiments/mine", sec_fetch_site="cross-site")
    assert first.status == 200
    assert b'http-equiv="refresh" content="0"' in first.body
    assert admin.get("/experiments/mine", sec_fetch_site="same-origin").status == 200
    assert Person(local).get("/experiments/mine", sec_fetch_site="same-origin").status == 303


def test_pages_have_a_strict_policy_and_are_not_kept(local, admin):
    for path in ("/", "/experiments/mine", "/new", "/login", "/experiments/none", "/assets/dashboard.js"):
        headers = admin.get(path).headers
        policy = headers.get("content-security-policy", "")
        if headers.get("location") is None:
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_have_nothing_that_the_policy_forbids(local, admin):
    for path in ("/", "/experiments/mine", "/experiments/mine/decision?id=known", "/new", "/login"):
        page = admin.get(path).body.decode()
        assert not re.search(r"<script(?! src=\"/assets/)|<style|\sstyle=|\son\w+=|javascript:|https?://", page), path


def test_without_keys_there_is_no_login_and_forms_still_need_their_token(tmp_path):
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", "/v1/experiments/p", SETTINGS)
        person = Person(local)
        assert "Log out" not in words(person.get("/").body)
        assert person.get("/login").headers["location"] == "/"
        assert person.ask("POST", "/experiments/p/change", {"action": "pause"}).status == 403
        assert person.send("/experiments/p", "/experiments/p/change", {"action": "pause"}).status == 303
        assert local.engine.experiments["p"].paused
        assert person.get("/", host="evil.example").status == 403
        form = {"action": "resume", "token": person.token("/new")}
        assert person.ask("POST", "/experiments/p/change", form, origin="http://evil.example").status == 403
        assert local.engine.experiments["p"].paused


# --- errors -------------------------------------------------------------------------------------------------------------------


def test_a_browser_gets_a_page_and_a_program_gets_a_problem(local, admin):
    missing = admin.get("/experiments/none")
    assert missing.status == 404
    assert "there is no experiment 'none'" in words(missing.body)
    assert "Experiments" in words(missing.body)  # with the navigation
    nowhere = admin.get("/nowhere")
    assert (nowhere.status, nowhere.headers["content-type"]) == (404, "text/html; charset=utf-8")
    program = local.call("GET", "/nowhere", headers={"accept": "*/*"})
    assert program.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/experiments/mine?window=2h", 422, "window = '2h' must be one of 5m, 1h, 1d, 30d, all"),
        ("/experiments/mine?wndow=1h", 422, "no parameter 'wndow'"),
        ("/experiments/mine/decision", 422, "id is missing"),
        ("/experiments/mine/decision?id=none", 404, "decision 'none' is not known"),
        ("/?page=0", 422, "page = '0' must be an integer >= 1"),
        ("/?page=x", 422, "page = 'x' must be an integer >= 1"),
        ("/assets/none.js", 404, "There is no file 'none.js'"),
    ],
)
def test_errors_are_explained(admin, path, status, message):
    answer = admin.get(path)
    assert answer.status == status
    assert message in words(answer.body)


def test_the_rate_limits_pages_too(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True, rate=2.0, tick=Clock(0.0)) as local:
        person = Person(local)
        person.log_in(local.admin)
        answers = [person.get("/") for _ in range(2)]  # and the login was the first call
        assert [answer.status for answer in answers] == [200, 429]
        assert answers[-1].headers["retry-after"] == "1"


def test_a_page_is_not_made_before_the_experiments_are_loaded(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        person = Person(local)
        person.log_in(local.admin)
        local.engine.loaded = False
        answer = person.get("/")
        assert answer.status == 503
        assert "reload this page" in words(answer.body)
        assert Person(local).get("/login").status == 200
        local.engine.loaded = True
        assert person.get("/").status == 200


def test_a_form_that_breaks_off_changes_nothing(local, admin):
    async def receive():
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "raw_path": b"/new", "query_string": b"",
             "headers": [(b"host", b"127.0.0.1"), (b"cookie", admin.cookie.encode())]}  # fmt: skip
    local.run(asyncio.wait_for(local.service(scope, receive, send), 10))
    assert sent == []
