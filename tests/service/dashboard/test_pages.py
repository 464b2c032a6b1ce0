"""What the pages of the dashboard show, what their forms do, and what their streams send."""

import asyncio
import math
import random
import re
from html import unescape
from urllib.parse import quote

import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person, words
from robandit.decisions import pace
from robandit.laws import Pareto
from robandit.service import experiments
from robandit.service.dashboard import experiment_page, looks, overview, pages

P = "/v1/experiments/p"


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "robandit.db") as local:
        yield local


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def timed(tmp_path, clock):
    with Local(tmp_path / "timed.db", clock=clock) as local:
        yield local


@pytest.fixture
def person(local):
    return Person(local)


def play(local, n, *, name="p", value=lambda i: 1.0 + i % 7):
    for i in range(n):
        made = local.call("POST", f"/v1/experiments/{name}/decisions").json
        local.call("POST", f"/v1/experiments/{name}/rewards", {"id": made["id"], "value": value(i)})


# --- one experiment -----------------------------------------------------------------------------------------------------------


def test_the_page_shows_what_the_interface_says(local, person):
    local.call("PUT", P, {"arms": ["a", "b"], "minimize": True, "unit": "ms", "seed": 1, "reward_window": 60.0})
    play(local, 150)
    local.call("POST", f"{P}/decisions", {"id": "left open"})
    shown = local.call("GET", P).json
    text = words(person.get("/experiments/p").body)
    assert re.search(
        r"decisions 151 rewards 150 rewards per second [\d.]+ open decisions 1 expired 0 late rewards 0", text
    )
    assert "costs in ms, minimised; policy: AdaKL-UCB" in text
    assert "traffic rewards chance to be best trimmed mean, ms 95 % limits" in text
    for arm in shown["arms"]:
        assert f"{arm['arm']} " in text
        assert f"{arm['pulls']:,}" in text
        if arm["mean"] is not None:
            assert f"{arm['mean']:.4g}" in text
    assert "left open" in text
    assert shown["settings"]["policy"] in text
    assert "reward window 1 min" in text


def test_tails_are_described_in_the_words_of_diagnose(local, person):
    local.call("PUT", P, {"arms": ["a"], "minimize": True, "seed": 1})
    costs = Pareto(tail=1.5).sample(150, seed=0).tolist()
    play(local, 150, value=costs.__getitem__)
    (tails,) = local.call("GET", P).json["diagnosis"]["tails"]
    low = tails["right"]["low"]
    assert low < 1.0
    text = words(person.get("/experiments/p").body)
    assert f"the variance may be infinite, and there may be no mean (index above {low:.2f})" in text


def test_before_the_first_decision(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    text = words(person.get("/experiments/p").body)
    assert "No decisions in this window (all time)" in text
    assert "No decisions yet" in text
    assert "Means appear after the first rewards" in text


def test_outcomes_of_the_newest_decisions(tmp_path):
    clock = Clock()
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        local.call("PUT", P, {"arms": ["a"], "unit": "EUR", "reward_window": 10.0})
        local.call("POST", f"{P}/decisions", {"id": "expired"})
        local.call("POST", f"{P}/decisions", {"id": "late"})
        clock.now += 11.0
        local.call("POST", f"{P}/rewards", {"id": "late", "value": 3.5})
        local.call("POST", f"{P}/decisions", {"id": "rewarded"})
        clock.now += 0.25
        local.call("POST", f"{P}/rewards", {"id": "rewarded", "value": 2.5})
        local.call("POST", f"{P}/decisions", {"id": "elsewhere", "arm": "a"})
        local.run(local.engine._expire_due(local.engine.experiments["p"]))
        page = Person(local).get("/experiments/p").body.decode()
        rows = [words(row) for row in re.findall(r"<tr>.*?</tr>", page.split('id="recent"')[1].split("</table>")[0])][
            1:
        ]
        assert [re.sub(r" \d{4}-\S+ \S+ UTC", "", row) for row in rows] == [
            "elsewhere a made elsewhere open –",
            "rewarded a 2.5 EUR 250 ms",
            "late a late 3.5 EUR 11 s",
            "expired a expired 11 s",
        ]


def test_a_reset_closes_decisions(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    local.call("POST", f"{P}/decisions", {"id": "before"})
    local.call("POST", f"{P}/reset")
    local.call("POST", f"{P}/decisions", {"id": "after"})
    text = words(person.get("/experiments/p").body.decode().split('id="recent"')[1])
    assert re.search(r"after \S+ \S+ UTC a open – before \S+ \S+ UTC a reset –", text)


def test_warnings_are_sentences(local, person):
    local.call("PUT", P, {"arms": ["a", "b"], "max_open": 10})
    local.call("POST", f"{P}/decisions/batch", {"items": [{} for _ in range(8)]})
    expected = "8 decisions wait for their rewards, and max_open is 10: check that rewards arrive."
    assert local.call("GET", P).json["warnings"] == [expected]
    assert f"1 warning {expected}" in words(person.get("/experiments/p").body)
    assert "1 warning" in words(person.get("/").body)


def test_an_experiment_with_one_arm_decides_nothing_yet(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    expected = "There is one arm only, 'a': nothing is decided yet. Add a second arm."
    assert local.call("GET", P).json["warnings"] == [expected]
    assert f"1 warning {expected}" in words(person.get("/experiments/p").body)
    assert "1 warning" in words(person.get("/").body)
    local.call("POST", f"{P}/arms", {"arm": "b"})
    assert local.call("GET", P).json["warnings"] == []


EXPIRED = (
    "{} of the recent decisions expired without a reward: send each reward within the reward_window (60 seconds), or create an "
    "experiment with a longer one."
)


def end(local, clock, rewarded, expired):
    """Make decisions, of which some are rewarded and the others expire."""
    made = local.call("POST", f"{P}/decisions/batch", {"items": [{}] * (rewarded + expired)}).json["items"]
    if rewarded:
        rewards = [{"id": each["decision"]["id"], "value": 1.0} for each in made[:rewarded]]
        local.call("POST", f"{P}/rewards/batch", {"items": rewards})
    clock.now += 61.0
    local.run(local.engine.change("p", lambda experiment: experiment.expire_due()))


@pytest.mark.parametrize(
    ("rewarded", "expired", "share"),
    [(9, 91, "91 %"), (39, 11, "22 %"), (40, 10, None), (79, 21, "21 %"), (0, 49, None), (0, 50, "100 %")],
)
def test_many_expired_decisions_are_a_warning(timed, clock, rewarded, expired, share):
    timed.call("PUT", P, {"arms": ["a", "b"], "reward_window": 60})
    end(timed, clock, rewarded, expired)
    expected = [] if share is None else [EXPIRED.format(share)]
    assert timed.call("GET", P).json["warnings"] == expected
    shown = words(Person(timed).get("/experiments/p").body)
    assert ("expired without a reward" in shown) == bool(expected)
    assert all(f"1 warning {each}" in shown for each in expected)
    assert ("1 warning" in words(Person(timed).get("/").body)) == bool(expected)


def test_expired_decisions_that_are_learned_are_no_warning(timed, clock):
    """In an experiment on sales, most visitors buy nothing."""
    timed.call("PUT", P, {"arms": ["a", "b"], "reward_window": 60, "on_expiry": 0.0})
    end(timed, clock, 9, 91)
    assert not [each for each in timed.call("GET", P).json["warnings"] if "expired" in each]


def test_only_recent_decisions_count(timed, clock):
    timed.call("PUT", P, {"arms": ["a", "b"], "reward_window": 60})
    for _ in range(6):
        end(timed, clock, 1000, 0)
    assert timed.call("GET", P).json["warnings"] == []
    end(timed, clock, 0, 400)
    assert len(timed.call("GET", P).json["warnings"]) == 1
    for _ in range(2):
        end(timed, clock, 1000, 0)
    assert timed.call("GET", P).json["warnings"] == []
    end(timed, clock, 0, 400)
    timed.call("POST", f"{P}/reset")
    assert timed.call("GET", P).json["warnings"] == []


def test_a_change_of_an_arm_is_a_warning(local, person):
    local.call("PUT", P, {"arms": ["a"], "minimize": True})
    for start, level in ((0, 1.0), (1, 10.0)):
        items = [{"id": f"{start}-{i}", "arm": "a"} for i in range(900)]
        rewards = [{"id": item["id"], "value": level * (1.0 + math.sin(i) ** 2)} for i, item in enumerate(items)]
        local.call("POST", f"{P}/decisions/batch", {"items": items})
        local.call("POST", f"{P}/rewards/batch", {"items": rewards})
    (warning,) = [each for each in local.call("GET", P).json["warnings"] if "changed" in each]
    assert warning in words(person.get("/experiments/p").body)


@pytest.mark.parametrize("window", ["5m", "1h", "1d", "30d", "all"])
def test_every_window(local, person, window):
    local.call("PUT", P, {"arms": ["a", "b"]})
    play(local, 3)
    page = person.get(f"/experiments/p?window={window}").body.decode()
    assert "Share of 3 decisions by arm" in page
    assert f'data-live="/experiments/p/live?window={window}"' in page
    assert page.count("aria-current=true") == 1


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a&amp;b",
    "'; alert(1) //",
    "\u202eright to left",
    "${x}`",
    " padded ",
]


def test_hostile_arms_are_inert_and_can_be_changed(local, person):
    local.call("PUT", P, {"arms": HOSTILE, "unit": "<b>"})
    play(local, 30)
    for path in ("/experiments/p", "/"):
        page = person.get(path).body.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>" not in page
        assert "\u202e" not in words(page.partition('id="manage"')[0])
    page = person.get("/experiments/p").body.decode()
    values = {unescape(each) for each in re.findall(r'name="arm" value="([^"]*)"', page)}
    assert values == set(HOSTILE)  # exact, so that the right arm is changed
    for arm in HOSTILE:
        assert person.send("/experiments/p", "/experiments/p/change", {"action": "pause-arm", "arm": arm}).status == 303
    assert set(local.engine.experiments["p"].bandit.states.values()) == {"paused"}
    id = local.call(
        "POST", f"{P}/decisions", {"id": "<i>&id=2", "arm": HOSTILE[0], "context": {"</pre><script>": 1}}
    ).json["id"]
    page = person.get(f"/experiments/p/decision?id={quote(id)}").body.decode()
    assert "<i>" not in page
    assert "<script>" not in page
    assert "</pre><script>" in unescape(page)
    links = re.findall(r'href="(/experiments/p/decision[^"]+)"', person.get("/experiments/p").body.decode())
    assert person.get(unescape(links[0])).status == 200


# --- the audit page -----------------------------------------------------------------------------------------------------------


def test_a_decision_is_explained(local, person):
    local.call("PUT", P, {"arms": ["a", "b"], "seed": 3, "unit": "ms"})
    play(local, 20)
    local.call("POST", f"{P}/decisions", {"id": "d", "context": {"region": "eu"}, "among": ["b"]})
    local.call("POST", f"{P}/rewards", {"id": "d", "value": 4.25})
    play(local, 5)
    known = local.call("GET", f"{P}/decisions/d").json
    text = words(person.get("/experiments/p/decision?id=d").body)
    assert "Arm b was chosen at" in text
    assert "Its reward, 4.25 ms , came after" in text
    assert "and was learned" in text
    assert '"region": "eu"' in text
    assert "chosen among b" in text
    for arm in known["arms"]:
        assert f"{arm['arm']} {'chosen ' if arm['arm'] == 'b' else ''}{arm['pulls']} " in text
        assert f"{arm['policy']['mean']:.4g}" in text
    assert "arm rewards estimated mean, ms index, ms threshold, ms share trimmed" in text
    assert f"event {known['seq']}" in text


def test_ends_of_decisions_in_sentences(tmp_path):
    clock = Clock()
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        person = Person(local)
        local.call("PUT", P, {"arms": ["a"], "reward_window": 10.0})
        for id in ("expired", "late"):
            local.call("POST", f"{P}/decisions", {"id": id})
        clock.now += 11.0
        local.call("POST", f"{P}/rewards", {"id": "late", "value": 3.5})
        local.run(local.engine._expire_due(local.engine.experiments["p"]))
        local.call("POST", f"{P}/decisions", {"id": "open", "arm": "a"})
        told = {id: words(person.get(f"/experiments/p/decision?id={id}").body) for id in ("expired", "late", "open")}
        assert "No reward came within the window: it expired after 11 s." in told["expired"]
        assert "too late (window), and was not learned" in told["late"]
        assert "Its reward has not come yet." in told["open"]
        assert "was chosen elsewhere and reported here" in told["open"]
        local.call("POST", f"{P}/reset")
        assert "The experiment was reset before its reward came." in words(
            person.get("/experiments/p/decision?id=open").body
        )


# --- forms --------------------------------------------------------------------------------------------------------------------

FORM = {"name": "made", "arms": "a\r\n b \r\n\r\nc"}


def test_create_by_form(local, person):
    answer = person.send(
        "/new",
        "/new",
        FORM
        | {
            "minimize": "true",
            "unit": "ms",
            "fallback": "a",
            "reward_window": "60",
            "on_expiry": "5",
            "seed": "7",
            "max_open": "50",
            "policy": "UCB1",
        },
    )
    assert (answer.status, answer.headers["location"]) == (303, "/experiments/made")
    settings = local.call("GET", "/v1/experiments/made").json["settings"]
    policy = settings.pop("policy")
    assert policy.startswith("UCB1(")
    assert settings == {
        "arms": ["a", "b", "c"],
        "minimize": True,
        "unit": "ms",
        "fallback": "a",
        "reward_window": 60.0,
        "on_expiry": 5.0,
        "seed": 7,
        "max_open": 50,
    }


def test_empty_fields_have_the_defaults_of_the_interface(local, person):
    person.send(
        "/new",
        "/new",
        FORM | dict.fromkeys(("unit", "fallback", "reward_window", "on_expiry", "seed", "max_open", "policy"), " "),
    )
    assert local.call("PUT", "/v1/experiments/made", {"arms": ["a", "b", "c"]}).status == 200


@pytest.mark.parametrize(
    ("changes", "field", "body"),
    [
        ({"name": "a b"}, "name", {}),
        ({"name": ""}, "name", {}),
        ({"arms": ""}, "arms", {"arms": []}),
        ({"arms": "a\na"}, "arms", {"arms": ["a", "a"]}),
        ({"arms": "x" * 101}, "arms", {"arms": ["x" * 101]}),
        ({"policy": "Nothing"}, "policy", {"policy": "Nothing"}),
        ({"policy": "EpsilonGreedy(epsilon=2)"}, "policy", {"policy": "EpsilonGreedy(epsilon=2)"}),
        ({"unit": "x" * 21}, "unit", {"unit": "x" * 21}),
        ({"unit": "m\ts"}, "unit", {"unit": "m\ts"}),
        ({"reward_window": "soon"}, "reward_window", {"reward_window": "soon"}),
        ({"reward_window": "-1"}, "reward_window", {"reward_window": -1}),
        ({"reward_window": "true"}, "reward_window", {"reward_window": "true"}),
        ({"on_expiry": "5"}, None, {"on_expiry": 5}),
        ({"on_expiry": "lose"}, "on_expiry", {"on_expiry": "lose"}),
        ({"max_open": "0"}, "max_open", {"max_open": 0}),
        ({"max_open": "1.5"}, "max_open", {"max_open": 1.5}),
        ({"seed": "NaN"}, "seed", {"seed": "NaN"}),
    ],
)  # fmt: skip
def test_bad_input_gets_the_messages_of_the_interface(local, person, changes, field, body):
    form = FORM | changes
    given = {"arms": ["a", "b", "c"]} | body
    expected = local.call("PUT", f"/v1/experiments/{quote(form['name']) or '%20'}", given).json
    answer = person.send("/new", "/new", form)
    assert answer.status == expected["status"]
    page = answer.body.decode()
    detail = expected["detail"] if form["name"] else expected["detail"].replace("' '", "''")
    assert detail in words(re.search(r'<p class="refused".*?</p>', page)[0])
    marked = re.findall(r'name="(\w+)"[^>]*aria-invalid="true" autofocus', page)
    assert marked == ([] if field is None else [field])
    for name, value in form.items():  # nothing that was typed is lost
        if value and name != "arms":
            assert f'name="{name}"' in page
            assert value in unescape(page)
    assert "made" not in local.engine.experiments


def test_an_experiment_is_not_created_twice(local, person):
    person.send("/new", "/new", FORM)
    same = person.send("/new", "/new", FORM)
    assert (same.status, "exists with the same settings" in words(same.body)) == (409, True)
    other = person.send("/new", "/new", FORM | {"seed": "1"})
    assert (other.status, "exists with other settings" in words(other.body)) == (409, True)


def test_a_floor_by_form(local, person):
    form = {"name": "floored", "arms": "a\nb", "floor": "0.02", "control": "a = 0.05, b=0.01"}
    assert person.send("/new", "/new", form).status == 303
    settings = local.call("GET", "/v1/experiments/floored").json["settings"]
    assert (settings["floor"], settings["control"]) == (0.02, {"a": 0.05, "b": 0.01})


@pytest.mark.parametrize("control", ["a", "a = 5 %", "a = 0.7, b = 0.7", "z = 0.1", "a = 0.1, a = 0.2"])
def test_wrong_control_arms_of_a_form_are_refused(local, person, control):
    refused = person.send("/new", "/new", {"name": "floored", "arms": "a\nb", "control": control})
    assert refused.status == 422
    assert "control" in refused.body.decode()
    assert local.call("GET", "/v1/experiments/floored").status == 404


def test_pause_resume_add_and_retire_by_form(local, person):
    local.call("PUT", P, {"arms": ["a", "b"]})
    experiment = local.engine.experiments["p"]

    def send(action, arm=""):
        answer = person.send("/experiments/p", "/experiments/p/change", {"action": action, "arm": arm})
        assert (answer.status, answer.headers["location"]) == (303, "/experiments/p?window=all#manage")

    send("pause")
    assert experiment.paused
    assert "Resume the experiment" in words(person.get("/experiments/p").body)
    send("resume")
    assert not experiment.paused
    send("add-arm", " c ")
    send("pause-arm", "a")
    assert experiment.bandit.states == {"a": "paused", "b": "active", "c": "active"}
    send("resume-arm", "a")
    send("retire-arm", "b")
    assert experiment.bandit.states == {"a": "active", "b": "retired", "c": "active"}
    actions = [each["action"] for each in local.call("GET", "/v1/audit").json["entries"]]
    assert actions == ["create", "pause", "resume", "add arm", "change arm", "change arm", "change arm"]


@pytest.mark.parametrize(
    ("form", "status", "message"),
    [
        ({"action": "add-arm", "arm": "a"}, 409, "arm 'a' exists and is active: choose another name"),
        ({"action": "add-arm", "arm": ""}, 422, "must be a string (1 to 100 characters"),
        ({"action": "add-arm", "arm": "x" * 101}, 422, "must be a string (1 to 100 characters"),
        ({"action": "pause-arm", "arm": "z"}, 404, "experiment 'p' has no arm 'z'"),
        ({"action": "resume-arm", "arm": "old"}, 409, "arm 'old' is retired and cannot come back"),
        ({"action": "explode"}, 422, "action = 'explode' must be one of"),
        ({}, 422, "action = '' must be one of"),
    ],
)
def test_a_change_that_is_refused_is_explained_on_the_page(local, person, form, status, message):
    local.call("PUT", P, {"arms": ["a", "old"]})
    local.call("PATCH", f"{P}/arms/old", {"state": "retired"})
    before = local.engine.experiments["p"].seq
    answer = person.send("/experiments/p", "/experiments/p/change", form)
    assert answer.status == status
    assert message in words(re.search(r'<p class="refused".*?</p>', answer.body.decode())[0])
    assert "Share of traffic" in words(answer.body)
    assert (
        b'data-page="/experiments/p?window=all"' in answer.body
    )  # where the script goes, not to the address of the form
    assert local.engine.experiments["p"].seq == before


# --- all experiments ----------------------------------------------------------------------------------------------------------


def test_the_overview(local, person):
    assert "There are no experiments yet" in words(person.get("/").body)
    local.call("PUT", P, {"arms": ["a", "b"]})
    local.call("PUT", "/v1/experiments/q", {"arms": ["x", "y"]})
    local.call("POST", "/v1/experiments/q/pause")
    play(local, 10)
    page = person.get("/").body.decode()
    rows = [words(row) for row in re.findall(r'<tr id="e-.*?</tr>', page)]
    assert re.fullmatch(r"p running 2 10 0 [ab] \d+ % \S+ \S+ UTC", rows[0])
    assert re.fullmatch(r"q paused 2 0 0 no rewards yet \S+ \S+ UTC", rows[1])


def test_many_experiments_have_pages_and_a_search(local, person, monkeypatch):
    monkeypatch.setattr(pages.overview, "PER_PAGE", 5)
    for i in range(12):
        local.call("PUT", f"/v1/experiments/e{i:02}", {"arms": ["a"]})

    def listed(path):
        return re.findall(r'<tr id="e-(e\d+)"', person.get(path).body.decode())

    assert listed("/") == [f"e{i:02}" for i in range(5)]
    assert listed("/?page=3") == ["e10", "e11"]
    assert listed("/?page=4") == []
    assert "There is no page 4" in words(person.get("/?page=4").body)
    assert listed("/?q=E1") == ["e10", "e11"]
    assert "No experiment has 'zzz' in its name" in words(person.get("/?q=zzz").body)
    assert "12 experiments" in words(person.get("/?q=zzz").body)
    assert re.findall(r'<a href="/\?q=&amp;page=(\d)"', person.get("/").body.decode()) == ["1", "2", "3"]


# --- live updates -------------------------------------------------------------------------------------------------------------


def test_the_stream_sends_the_parts_that_have_changed(local, person):
    local.call("PUT", P, {"arms": ["a", "b"]})
    with person.stream("/experiments/p/live") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        first = stream.next()
        assert set(first[1]) == {"state", "shape", "warnings", "leader", "facts", "chart", "arms", "tails", "recent"}
        local.call("POST", f"{P}/decisions", {"id": "new one"})
        parts = stream.until(lambda parts: "new one" in parts.get("recent", ""))
        assert "tails" not in parts
        local.call("POST", f"{P}/pause")
        parts = stream.until(lambda parts: "state" in parts)
        assert "paused" in parts["state"]
        page = person.get("/experiments/p").body.decode()
        assert f'data-shape="{parts.pop("shape")}"' in page
        for id, content in parts.items():
            assert f'id="{id}"' in page, id
            assert id in ("chart", "facts") or content in page


def test_the_stream_of_the_overview_sends_rows(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    local.call("PUT", "/v1/experiments/q", {"arms": ["a"]})
    with person.stream("/live") as stream:
        assert stream.next()[1].keys() == {"rows"}
        assert stream.next()[1].keys() == {"e-p", "e-q"}
        local.call("POST", f"{P}/decisions")
        assert stream.next()[1].keys() == {"e-p"}
        local.call("DELETE", P)
        parts = stream.until(lambda parts: "rows" in parts)
        assert "e-q" in parts["rows"]
        assert "e-p" not in parts["rows"]
        local.call("PUT", "/v1/experiments/new", {"arms": ["a"]})
        parts = stream.until(lambda parts: "e-new" in parts.get("rows", ""))
        assert parts["rows"] in person.get("/").body.decode()


def test_a_stream_ends_when_its_experiment_is_deleted(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    with person.stream("/experiments/p/live") as stream:
        stream.next()
        local.call("DELETE", P)
        local.call("PUT", P, {"arms": ["b"]})
        assert stream.next() == ("end", None)
        assert stream.next() is None
    assert "b" in words(person.get("/experiments/p").body)


def test_streams_end_with_the_server(local, person):
    local.call("PUT", P, {"arms": ["a"]})
    with person.stream("/experiments/p/live") as stream:
        stream.next()
        local.loop.call_soon_threadsafe(local.service.end_streams)
        while stream.next() is not None:
            pass


def test_a_silent_stream_has_a_heartbeat_and_ends_with_its_reader(local, person, monkeypatch):
    monkeypatch.setattr(pages, "HEARTBEAT", 0.1)
    monkeypatch.setattr(pages, "TICK", 0.05)
    local.call("PUT", P, {"arms": ["a"]})
    with person.stream("/live") as stream:
        stream.next()
        stream.next()
        assert stream.next() == ("alive", None)
        assert local.service._site.streams == 1
        local.loop.call_soon_threadsafe(stream._gone.set)
        stream._call.result(20)  # although the first message that the server asks for is the request
    assert local.service._site.streams == 0


def test_warnings_beyond_the_first_are_folded():
    few = experiment_page._warnings(["one", "two", "three"])
    assert "<details" not in few
    many = experiment_page._warnings([f"w{i}" for i in range(5)])
    assert words(many) == "5 warnings w0 w1 w2 2 more w3 w4"
    assert "w2" not in many.partition("<details")[2]


def test_a_thousand_arms_have_a_short_table(local, person):
    local.call("PUT", P, {"arms": [f"arm {i}" for i in range(1000)]})
    local.call("POST", f"{P}/decisions", {"arm": "arm 999"})
    parts = person.stream("/experiments/p/live")
    with parts as stream:
        sent = stream.next()[1]
    assert sent["arms"].count("<tr>") == 101
    assert "arm 999" in sent["arms"].partition("</tr>")[2].partition("</tr>")[0]
    assert "And 900 arms with less traffic" in sent["arms"]
    assert len(str(sent)) < 150_000


def test_costs_that_are_maximised_are_questioned(local, person):
    local.call("PUT", P, {"arms": ["a", "b"]})
    items = [{"id": f"{i}", "arm": "a"} for i in range(600)]
    local.call("POST", f"{P}/decisions/batch", {"items": items})
    rng = random.Random(2)
    rewards = [{"id": f"{i}", "value": rng.paretovariate(1.5)} for i in range(600)]
    local.call("POST", f"{P}/rewards/batch", {"items": rewards})
    assert local.call("GET", P).json["warnings"] == [experiments.COSTS]
    assert experiments.COSTS in words(person.get("/experiments/p").body)


def test_the_reason_of_a_decision(local, person):
    local.call("PUT", P, {"arms": ["a", "b"], "minimize": True, "seed": 1})
    play(local, 60)
    id = local.call("POST", f"{P}/decisions").json["id"]
    known = local.call("GET", f"{P}/decisions/{id}").json
    indices = {arm["arm"]: arm["policy"]["index"] for arm in known["arms"]}
    told = "It had the lowest index" in words(person.get(f"/experiments/p/decision?id={id}").body)
    assert told == (min(indices, key=indices.get) == known["arm"])
    assert told
    worse = max(indices, key=indices.get)
    local.call("POST", f"{P}/decisions", {"id": "given", "arm": worse})
    assert "index:" not in words(person.get("/experiments/p/decision?id=given").body)


def test_the_number_of_streams_is_limited(local, person, monkeypatch):
    monkeypatch.setattr(pages, "MOST_STREAMS", 1)
    local.call("PUT", P, {"arms": ["a"]})
    with person.stream("/live") as stream:
        stream.next()
        with person.stream("/experiments/p/live") as other:
            assert other.status == 429


def test_people_share_a_look(local, monkeypatch):
    local.call("PUT", P, {"arms": ["a"]})
    made = []
    whole = looks.Look._rendered

    async def counted(self, *given):
        made.append(self)
        return await whole(self, *given)

    monkeypatch.setattr(looks.Look, "_rendered", counted)
    monkeypatch.setattr(looks, "TICK", 60.0)
    streams = [Person(local).stream("/experiments/p/live") for _ in range(5)]
    for stream in streams:
        stream.__enter__()
        stream.next()
    assert len(made) == 1
    for stream in streams:
        stream.__exit__()


def test_old_looks_are_forgotten(local, monkeypatch):
    monkeypatch.setattr(looks, "MOST_LOOKS", 2)
    for name in "pqr":
        local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]})
        Person(local).get(f"/experiments/{name}")
    kept = local.service._site.looks._looks
    assert [look.experiment.name for look in kept.values()] == ["q", "r"]
    local.call("DELETE", "/v1/experiments/q")
    Person(local).get("/experiments/r")
    assert [look.experiment.name for look in kept.values()] == ["r"]


def test_a_study_that_fails_leaves_the_rest_of_the_page(local, person, monkeypatch, capsys):
    local.call("PUT", P, {"arms": ["a"]})
    play(local, 3)

    async def broken(experiment, **_):
        raise ZeroDivisionError

    monkeypatch.setattr(local.service.state.studies, "study", broken)
    text = words(person.get("/experiments/p").body)
    assert "Share of traffic" in text
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_list_that_is_made_during_a_batch_shows_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "SLICE", 0.0)

    async def rows(local):
        engine, begun = local.service.state.engine, asyncio.Event()

        def act(experiment):
            begun.set()
            return experiment.decide()

        batch = asyncio.create_task(engine.change_all("e", [act] * 20, ids=()))
        await begun.wait()
        made = await overview.row_parts(local.service._site, [engine.find("e")])
        await batch
        return made["e-e"]

    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", "/v1/experiments/e", {"arms": ["a", "b"]})
        assert local.run(rows(local)).count("<td>20</td>") == 2  # decisions, all of them open
