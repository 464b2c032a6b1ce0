"""The dashboard in headless Chromium, with a real server: live updates, keyboard, small screens, contrast, hostile names."""

import signal
import time
from collections import namedtuple

import pytest

from helpers.chromium import CONTRAST, NAMES, executable
from helpers.served import Reply, served
from helpers.serving import Server

pytestmark = [
    pytest.mark.skipif(executable() is None, reason=f"none of {', '.join(NAMES)} is on PATH"),
    pytest.mark.xdist_group("browser"),  # one process starts it
]
HOSTILE = [
    '<img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "w" * 100,
    "\u202eabc",
    "a&lt;b",
]
Dashboard = namedtuple("Dashboard", "server reader cookie")
"""A server with experiments, a key that may only read, and the cookie of an administrator."""


def fill(server, name, arms, n, *, context=None, **settings):
    """Create an experiment with ``n`` rewards, so many for each arm that there are means and tails, and some open decisions."""
    path = f"/v1/experiments/{name}"
    assert server.call("PUT", path, {"arms": arms, "seed": 1, **settings}).status == 201
    for start in range(0, n, 1000):
        items = [
            {"id": f"{name}-{i}", "arm": arms[i % len(arms)], "context": context}
            for i in range(start, min(n, start + 1000))
        ]
        values = [{"id": item["id"], "value": 100.0 + 400.0 / (1 + (7 * i) % 97)} for i, item in enumerate(items)]
        server.call("POST", f"{path}/decisions/batch", {"items": items})
        server.call("POST", f"{path}/rewards/batch", {"items": values[:-3]})


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("dashboard") / "robandit.db", authenticate=True) as server:
        fill(server, "provider", ["openai", "anthropic", "mistral"], 1000, minimize=True, unit="ms")
        fill(server, "wide", [f"arm {i}" for i in range(50)], 4000)
        fill(server, "hostile", HOSTILE, 500, unit="<b>x</b>")
        features = {name[:60]: {"type": "category", "values": HOSTILE} for name in HOSTILE[:3]}
        fill(
            server,
            "contexts",
            HOSTILE,
            60,
            policy="LinUCB",
            features=features,
            context=dict.fromkeys(features, HOSTILE[0]),
        )
        server.call("PUT", "/v1/experiments/empty", {"arms": ["a"]})
        reader = server.call("POST", "/v1/keys", {"scopes": ["read"], "note": "reader"}).json
        yield Dashboard(server, reader["key"], [])


def log_in(browser, server, key):
    browser.call("Network.clearBrowserCookies")
    browser.open(f"{server.url}/login")
    browser.do("document.querySelector('[name=key]').focus()")
    browser.write(key)
    browser.press("Enter")
    browser.wait("location.pathname === '/' && document.documentElement.dataset.ready")


@pytest.fixture
def admin(browser, dashboard):
    """The browser, with the cookie of a session of an administrator."""
    if not dashboard.cookie:
        log_in(browser, dashboard.server, dashboard.server.key)
        browser.wait("document.getElementById('live').textContent === 'live'")
        dashboard.cookie.extend(browser.call("Network.getCookies", urls=[dashboard.server.url])["cookies"])
    (cookie,) = dashboard.cookie
    browser.open("about:blank")  # the page before would notice that its cookie is gone
    browser.call("Network.clearBrowserCookies")
    fields = {name: cookie[name] for name in ("name", "value", "httpOnly", "sameSite")}
    browser.call("Network.setCookie", url=dashboard.server.url, **fields)
    return browser


def quiet(browser, server):
    """No error on the console, and only the server was asked."""
    assert browser.problems == []
    assert browser.requests
    assert [url for url in browser.requests if not url.startswith(f"{server.url}/")] == []


PAGES = {
    "overview": "/",
    "new": "/new",
    "experiment": "/experiments/provider",
    "fifty arms": "/experiments/wide",
    "hostile": "/experiments/hostile",
    "contexts": "/experiments/contexts?context=%3Cb%3E",
    "empty": "/experiments/empty",
    "decision": "/experiments/hostile/decision?id=hostile-1",
    "missing": "/experiments/none",
}


def opened(browser, dashboard, name, **options):
    browser.open(dashboard.server.url + PAGES[name], **options)
    if name in ("experiment", "fifty arms", "hostile"):
        browser.wait("document.querySelector('#tails table')")  # the first study takes a moment


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_and_fits_small_screens(admin, dashboard, name):
    for width in (1200, 360):
        opened(admin, dashboard, name, width=width, height=740)
        admin.do("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert admin.do("return document.documentElement.scrollWidth") <= width
        if name != "missing":  # where the browser itself notes the 404
            quiet(admin, dashboard.server)
        assert admin.do("return [typeof window.hacked, document.images.length]") == ["undefined", 1]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", [name for name in PAGES if name != "empty"])
def test_text_stands_out_from_its_background(admin, dashboard, name, dark):
    opened(admin, dashboard, name, dark=dark)
    seen, poor = admin.do(CONTRAST)
    assert seen > (8 if name in ("missing", "new") else 30)
    assert poor == []


@pytest.mark.parametrize("name", PAGES)
def test_everything_has_a_name_and_can_be_reached_by_keyboard(admin, dashboard, name):
    opened(admin, dashboard, name)
    nameless = admin.do("""
        const named = (each) => each.ariaLabel || each.labels?.length || each.title || each.textContent.trim();
        return [...document.querySelectorAll("a, button, input:not([type=hidden]), textarea, [role=img], [role=region], nav")]
            .filter((each) => !named(each)).map((each) => each.outerHTML)""")
    assert nameless == []
    ids = admin.do("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    wanted = admin.do("""
        return [...document.querySelectorAll("a, button, input:not([type=hidden]), textarea, summary, svg[tabindex]")]
            .filter((each) => each.checkVisibility()).length""")
    admin.do("document.activeElement.blur(); window.reached = new Set()")
    for _ in range(min(wanted, 60) + 12):  # boxes that scroll are reached, too
        admin.press("Tab")
        admin.do(
            "const at = document.activeElement; if (at.matches('a, button, input, textarea, summary, svg')) window.reached.add(at)"
        )
    assert admin.do("return window.reached.size") >= min(wanted, 60)


def test_the_first_step_is_to_skip_the_navigation(admin, dashboard):
    opened(admin, dashboard, "experiment")
    admin.do("document.activeElement.blur()")
    admin.press("Tab")
    assert admin.do("return document.activeElement.textContent") == "Skip to the content"
    assert admin.do("return document.activeElement.getBoundingClientRect().left") >= 0


# --- live updates -------------------------------------------------------------------------------------------------------------


def test_news_arrive_without_reloading(admin, dashboard):
    server = dashboard.server
    opened(admin, dashboard, "experiment")
    admin.do("window.same = true")
    admin.wait("document.getElementById('live').textContent === 'live'")
    server.call("POST", "/v1/experiments/provider/decisions", {"id": "just now", "arm": "openai"})
    admin.wait("document.getElementById('recent').textContent.includes('just now')")
    server.call("POST", "/v1/experiments/provider/rewards", {"id": "just now", "value": 777.5})
    admin.wait("document.getElementById('recent').textContent.includes('777.5 ms')")
    server.call("POST", "/v1/experiments/provider/pause")
    admin.wait("document.getElementById('state').textContent === 'paused'")
    server.call("POST", "/v1/experiments/provider/resume")
    admin.wait("document.getElementById('state').textContent === 'running'")
    assert admin.do("return window.same")
    admin.open(f"{server.url}/")
    admin.wait("document.getElementById('live').textContent === 'live'")
    decisions = "Number(document.querySelector('#e-provider td:nth-of-type(3)').textContent.replace(',', ''))"
    before = admin.do(f"return {decisions}")
    server.call("POST", "/v1/experiments/provider/decisions")
    admin.wait(f"{decisions} === {before + 1}")
    quiet(admin, server)


def test_the_focus_and_the_read_out_stay_during_updates(admin, dashboard):
    server = dashboard.server
    admin.open(f"{server.url}/experiments/provider?window=30d")  # whose columns stay where they are
    tip = "document.getElementById('tip')"
    admin.do("document.querySelector('#recent a').focus()")
    link = admin.do("return document.activeElement.href")
    decisions = "document.querySelector('#facts dd').textContent"
    before = admin.do(f"return {decisions}")
    server.call("POST", "/v1/experiments/provider/decisions", {"id": "while focused"})
    admin.wait(f"{decisions} !== '{before}'")
    assert admin.do("return document.activeElement.href") == link  # and the list is held, so that the click hits
    assert not admin.do("return document.getElementById('recent').textContent.includes('while focused')")
    admin.do("document.activeElement.blur()")
    admin.wait("document.getElementById('recent').textContent.includes('while focused')")
    admin.do("document.querySelector('svg.stack').focus()")
    last = admin.do(f"return {tip}.textContent")
    assert "openai" in last
    admin.press("Home")
    first = admin.do(f"return {tip}.textContent")
    assert "no decisions" in first
    server.call("POST", "/v1/experiments/provider/decisions", {"id": "while reading"})
    admin.wait("document.getElementById('recent').textContent.includes('while reading')")
    assert admin.do("return document.activeElement.matches('svg.stack')")
    assert admin.do(f"return {tip}.textContent") == first
    admin.press("Escape")
    assert admin.do(f"return {tip}.hidden")


def test_the_chart_is_read_by_pointer(admin, dashboard):
    opened(admin, dashboard, "experiment")
    x, y = admin.do("""const box = document.querySelector('svg.stack').getBoundingClientRect();
        return [box.left + 4, box.top + box.height / 2]""")
    admin.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "rewards" in admin.wait("document.getElementById('tip').textContent")
    assert admin.do("return document.querySelectorAll('svg.stack .guide').length") == 1
    admin.call("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5)
    admin.wait("document.getElementById('tip').hidden")


def test_old_forms_say_so(admin, dashboard):
    server = dashboard.server
    opened(admin, dashboard, "empty")
    admin.wait("document.getElementById('live').textContent === 'live'")
    assert admin.do("return document.getElementById('old-forms').hidden")
    server.call("POST", "/v1/experiments/empty/arms", {"arm": "another"})
    admin.wait("!document.getElementById('old-forms').hidden")


def test_a_hidden_page_has_no_connection(admin, dashboard):
    opened(admin, dashboard, "experiment")
    admin.wait("document.getElementById('live').textContent === 'live'")
    admin.do("""
        Object.defineProperty(document, "hidden", { value: true, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))""")
    server = dashboard.server
    server.call("POST", "/v1/experiments/provider/decisions", {"id": "while hidden"})
    time.sleep(1.0)
    assert not admin.do("return document.getElementById('recent').textContent.includes('while hidden')")
    admin.do("""
        Object.defineProperty(document, "hidden", { value: false, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))""")
    admin.wait("document.getElementById('recent').textContent.includes('while hidden')")


def test_a_page_says_that_the_server_is_away(browser, tmp_path):
    server = Server(tmp_path / "robandit.db")
    try:
        server.wait_until_ready()
        server.call("PUT", "/v1/experiments/p", {"arms": ["a"]})
        browser.open(f"{server.url}/experiments/p")
        browser.wait("document.getElementById('live').textContent === 'live'")
    finally:
        server.stop(signal.SIGKILL)
    browser.wait("document.getElementById('live').textContent.startsWith('not connected')")
    assert "Share of traffic" in browser.do("return document.body.textContent")


def test_the_server_ends_at_once_although_somebody_looks(browser, tmp_path):
    with Server(tmp_path / "robandit.db") as server:
        server.call("PUT", "/v1/experiments/p", {"arms": ["a"]})
        browser.open(f"{server.url}/experiments/p")
        browser.wait("document.getElementById('live').textContent === 'live'")
        began = time.monotonic()
        code, out, _ = server.stop()
        assert (code, "stopped; everything is stored" in out) == (0, True)
        assert time.monotonic() - began < 20.0  # it would be 30 if the stream had to be cancelled


def test_without_script_the_page_is_complete(admin, dashboard):
    opened_without = f"{dashboard.server.url}/experiments/provider"
    admin.open(opened_without, script=False)
    try:
        text = admin.do("return document.body.innerText")
        assert "Share of traffic" in text
        assert "UTC" in text
        assert admin.do("return document.querySelectorAll('svg.stack path').length") >= 3
    finally:
        admin.call("Emulation.setScriptExecutionDisabled", value=False)


# --- sessions and forms -------------------------------------------------------------------------------------------------------


def test_a_session_ends_when_its_key_is_revoked(browser, dashboard):
    server = dashboard.server
    made = server.call("POST", "/v1/keys", {"scopes": ["read"]}).json
    log_in(browser, server, made["key"])
    browser.open(f"{server.url}/experiments/provider")
    browser.wait("document.getElementById('live').textContent === 'live'")
    server.call("DELETE", f"/v1/keys/{made['id']}")
    browser.wait("location.pathname === '/login'")
    assert "Your session has ended" in browser.wait("document.body.innerText")


def test_the_key_is_not_kept_in_the_browser(admin, dashboard):
    secret = dashboard.server.key.split("_", 2)[2]
    admin.open(f"{dashboard.server.url}/")
    assert admin.do("return document.cookie") == ""
    cookies = admin.call("Network.getCookies", urls=[dashboard.server.url])["cookies"]
    (cookie,) = cookies
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert secret not in str(cookies)
    assert admin.do("return [localStorage.length, sessionStorage.length]") == [0, 0]


def test_a_reader_sees_and_cannot_change(browser, dashboard):
    log_in(browser, dashboard.server, dashboard.reader)
    browser.open(f"{dashboard.server.url}/experiments/provider")
    assert "anthropic" in browser.do("return document.body.innerText")
    assert browser.do("return [...document.querySelectorAll('form[method=post]')].map((form) => form.action)") == [
        f"{dashboard.server.url}/logout"
    ]
    refused = browser.do("""
        const token = document.querySelector("[name=token]").value;
        const body = new URLSearchParams({ token, action: "pause" });
        const answer = await fetch("/experiments/provider/change", { method: "POST", body });
        return [answer.status, await answer.text()]""")
    assert refused[0] == 403
    assert "lacks the scope admin" in refused[1]
    assert dashboard.server.call("GET", "/v1/experiments/provider").json["state"] == "running"


def test_an_experiment_is_created_paused_and_its_arm_retired(admin, dashboard):
    server = dashboard.server
    admin.open(f"{server.url}/new")
    admin.do("document.querySelector('[name=name]').focus()")
    admin.write("by hand")
    admin.press("Tab")
    admin.write("left\nright")
    admin.do("document.querySelector('button.main').click()")
    message = admin.wait("document.querySelector('[role=alert]')?.textContent")
    assert message == server.call("PUT", "/v1/experiments/by%20hand", {"arms": ["left", "right"]}).json["detail"]
    assert admin.do("return document.querySelector('[aria-invalid]').name") == "name"
    assert admin.do("return document.querySelector('textarea').value") == "left\nright"
    admin.problems.clear()  # the browser notes the 422
    admin.do("const field = document.querySelector('[name=name]'); field.focus(); field.select()")
    admin.write("by-hand")
    admin.press("Enter")
    admin.wait("location.pathname === '/experiments/by-hand' && document.documentElement.dataset.ready")
    admin.do("document.querySelector('button[value=pause]').click()")
    admin.wait(
        "document.getElementById('state')?.textContent === 'paused' && document.querySelector('button[value=resume]')"
    )
    admin.do("document.querySelector('#manage ~ .box summary').focus()")
    admin.press("Enter")
    admin.wait("document.querySelector('#manage ~ .box details').open")
    admin.press("Tab")
    admin.press("Enter")
    admin.wait("[...document.querySelectorAll('#arms .badge')].some((each) => each.textContent === 'retired')")
    shown = server.call("GET", "/v1/experiments/by-hand").json
    assert (shown["state"], [arm["state"] for arm in shown["arms"]]) == ("paused", ["retired", "active"])
    quiet(admin, server)


def test_a_link_of_another_site_leads_to_the_page(admin, dashboard):
    """The browser keeps the strict cookie back at first. (127.0.0.1 and localhost are different sites.)"""
    goal = f"{dashboard.server.url}/experiments/provider"
    page = Reply(f'<!doctype html><title>x</title><a href="{goal}">there</a>'.encode(), "text/html")
    with served({"/": page}) as elsewhere:
        admin.open(elsewhere.url.replace("127.0.0.1", "localhost") + "/")
        admin.do("document.querySelector('a').click()")
        admin.wait("document.getElementById('chart')")
        assert admin.do("return location.href") == goal


# --- sizes --------------------------------------------------------------------------------------------------------------------


def test_fifty_arms_stay_usable(admin, dashboard):
    opened(admin, dashboard, "fifty arms")
    assert admin.do("return document.querySelectorAll('#arms tbody tr').length") == 50
    assert (
        admin.do("return [...document.querySelectorAll('.keys li')].map((each) => each.textContent).at(-1)")
        == "other arms"
    )
    assert admin.do("return document.querySelectorAll('.keys li').length") == 8
    dashboard.server.call("POST", "/v1/experiments/wide/decisions", {"id": "of many"})
    admin.wait("document.getElementById('recent').textContent.includes('of many')")


def test_a_thousand_experiments_stay_usable(browser, tmp_path):
    with Server(tmp_path / "robandit.db") as server:
        for i in range(1000):
            server.call("PUT", f"/v1/experiments/e{i:04}", {"arms": ["a", "b"]})
        browser.open(f"{server.url}/")
        assert browser.do("return document.querySelectorAll('tr[id]').length") == 100
        assert "1,000 experiments" in browser.do("return document.body.innerText")
        browser.wait("document.getElementById('live').textContent === 'live'")
        server.call("POST", "/v1/experiments/e0042/decisions")
        browser.wait("document.querySelector('#e-e0042 td:nth-of-type(3)').textContent === '1'")
        browser.do("document.querySelector('[name=q]').focus()")
        browser.write("e09")
        browser.press("Enter")
        browser.wait(
            "document.querySelectorAll('tr[id]').length === 100 && document.querySelector('tr[id]').id === 'e-e0900'"
        )
        quiet(browser, server)
