"""Features over HTTP: the setting, contexts, what answers, the log and explanations say, and the dashboard."""

import csv
import io
import json
import re
from urllib.parse import urlencode

import polars as pl
import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person, words

P = "/v1/experiments/p"
FEATURES = {
    "tokens": {"type": "number", "center": 100.0, "scale": 50.0},
    "region": {"type": "category", "values": ["eu", "us"]},
}
MADE = {"arms": ["a", "b"], "policy": "LinUCB", "minimize": True, "features": FEATURES}
CONTEXT = {"tokens": 150, "region": "eu", "trace": ["not", "learned"]}


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "robandit.db", clock=Clock()) as local:
        yield local


@pytest.fixture
def made(local):
    settings = local.call("PUT", P, MADE).json["settings"]
    assert settings["policy"] == "LinUCB(d=4, shared=False, alpha=1.0)"
    assert settings["features"]["tokens"] == FEATURES["tokens"] | {"log": False, "missing": False}
    return local


def decide(local, **body):
    return local.call("POST", f"{P}/decisions", body)


def play(local, count):
    """Let region eu be cheap on arm a, and region us on arm b."""
    for i in range(count):
        context = {"tokens": 100 + i % 7, "region": ("eu", "us")[i % 2]}
        arm = decide(local, id=f"d{i}", context=context).json["arm"]
        cost = 1.0 if arm == "ab"[i % 2] else 5.0
        local.call("POST", f"{P}/rewards", {"id": f"d{i}", "value": cost})


def test_a_feature_that_is_given_twice_is_refused(made):
    written = b'{"context": {"tokens": 1, "region": "eu", "tokens": 2}}'
    refused = made.call("POST", f"{P}/decisions", written)
    assert (refused.status, refused.json["parameter"], refused.json["rule"]) == (422, "tokens", "given once")
    [item] = made.call("POST", f"{P}/decisions/batch", b'{"items": [%b]}' % written).json["items"]
    assert (item["status"], item["problem"]["parameter"]) == (422, "tokens")
    assert decide(made, context=CONTEXT | {"trace": {"tokens": 1}}).status == 200
    made.call("PUT", "/v1/experiments/plain", {"arms": ["a"]})  # its contexts are only stored
    assert made.call("POST", "/v1/experiments/plain/decisions", written).status == 200


def test_the_policy_learns_from_declared_fields(made):
    play(made, 40)
    for region, arm in (("eu", "a"), ("us", "b")):
        assert decide(made, context={"tokens": 100, "region": region, "x": 1}).json["arm"] == arm
    again = decide(made, id="d3", context={"region": "us", "tokens": 103})
    assert (again.status, again.replayed) == (200, True)
    assert decide(made, id="d3", context={"region": "eu", "tokens": 103}).status == 409
    assert made.call("PUT", P, MADE).status == 200
    other = made.call("PUT", P, MADE | {"features": {"tokens": {"type": "number"}}})
    assert (other.status, "features is" in other.json["detail"]) == (409, True)


def test_the_default_policy(local):
    settings = local.call("PUT", P, {"arms": ["a", "b"], "features": FEATURES}).json["settings"]
    assert settings["policy"] == "AdaClipTS(d=4, shared=False)"
    made = decide(local, context=CONTEXT)
    assert (made.status, made.json["propensity"]) == (200, 1.0)
    local.call("PUT", "/v1/experiments/q", {"arms": ["a", "b"]})
    assert "features" not in local.call("GET", "/v1/experiments/q").json["settings"]
    assert local.call("POST", "/v1/experiments/q/decisions", {"context": [1]}).status == 200, "contexts are stored"


@pytest.mark.parametrize(
    ("context", "parameter"),
    [
        (None, "context"),
        ([], "context"),
        ("eu", "context"),
        ({"region": "eu"}, "context"),
        ({"tokens": None, "region": "eu"}, "context"),
        ({"tokens": "150", "region": "eu"}, "context['tokens']"),
        ({"tokens": 1e300, "region": "eu"}, "context['tokens']"),
        ({"tokens": 10**400, "region": "eu"}, "context['tokens']"),
        ({"tokens": 150, "region": "EU"}, "context['region']"),
        ({"tokens": 150, "region": ["eu"]}, "context['region']"),
    ],
)
def test_bad_contexts(made, context, parameter):
    before = made.call("GET", P).json["seq"]
    for asked in ({}, {"arm": "a"}):
        refused = decide(made, context=context, **asked)
        assert (refused.status, refused.json["code"], refused.json["parameter"]) == (422, "invalid", parameter)
    assert made.call("GET", P).json["seq"] == before


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"features": []}, "features"),
        ({"features": {}}, "features"),
        ({"features": {"tokens": "number"}}, "features"),
        ({"features": {"tokens": {"kind": "number"}}}, "features"),
        ({"features": {"tokens": {"type": "number", "logg": True}}}, "features"),
        ({"features": {"c": {"type": "category", "buckets": 64}, "d": {"type": "number"}}}, "features"),
        ({"policy": "UCB1"}, "policy"),
        ({"features": None}, "features"),
        ({"sticky_for": 60}, "sticky_for"),
    ],
)
def test_bad_settings(local, settings, parameter):
    refused = local.call("PUT", P, MADE | settings)
    assert (refused.status, refused.json["code"], refused.json["parameter"]) == (422, "invalid", parameter)
    assert local.call("GET", P).status == 404


def test_a_field_that_is_misspelt_in_a_feature_is_named(local):
    refused = local.call("PUT", P, MADE | {"features": {"tokens": {"type": "number", "logg": True}}}).json
    assert all(word in refused["detail"] for word in ("tokens", "logg", "did you mean", "log"))


def test_a_batch(made):
    items = [{"id": "1", "context": CONTEXT}, {"context": {}}, {"arm": "b", "context": CONTEXT}, {"id": "4"}]
    answers = made.call("POST", f"{P}/decisions/batch", {"items": items}).json["items"]
    assert [each["status"] for each in answers] == [200, 422, 200, 422]
    assert [each["problem"]["parameter"] for each in answers if each["problem"]] == ["context"] * 2


def test_an_explanation_has_features_estimates_widths_and_chances(made):
    play(made, 40)
    decide(made, id="last", context=CONTEXT, among=["b"])
    explained = made.call("GET", f"{P}/decisions/last").json
    assert explained["context"] == CONTEXT
    assert explained["features"] == {"intercept": 1.0, "tokens": 1.0, "region=eu": 1.0, "region=us": 0.0}
    assert explained["arm"] == "b"
    known = {arm["arm"]: arm["policy"] for arm in explained["arms"]}
    assert [known[arm]["chance"] for arm in "ab"] == [1.0, 0.0]
    assert known["a"]["mean"] < known["b"]["mean"]
    assert known["a"]["width"] > 0.0
    then = made.call("GET", f"{P}/decisions/d0").json
    assert [arm["policy"]["mean"] for arm in then["arms"]] == [None, None]
    assert [arm["pulls"] for arm in then["arms"]] == [0, 0]
    made.call("PUT", "/v1/experiments/q", {"arms": ["a", "b"]})
    made.call("POST", "/v1/experiments/q/decisions", {"id": "x"})
    assert "features" not in made.call("GET", "/v1/experiments/q/decisions/x").json


def test_the_log_has_what_was_encoded(local):
    local.call("PUT", P, MADE | {"features": {"tokens": {"type": "number"}}})
    for i in range(101):
        decide(local, context={"tokens": float(i), "note": "ä"})
    rows = [json.loads(line) for line in local.call("GET", f"{P}/log").body.splitlines()]
    decided = [row for row in rows if row["kind"] == "decided"]
    assert decided[99]["x"] == [1.0, 0.0]
    assert decided[100]["x"] == [1.0, pytest.approx((100.0 - 49.5) / (49.5 / 1.349), rel=1e-12)]
    assert decided[100]["context"] == {"tokens": 100.0, "note": "ä"}
    for row in decided[98:]:
        assert list(local.call("GET", f"{P}/decisions/{row['id']}").json["features"].values()) == row["x"]
    (scaled,) = (row for row in rows if row["kind"] == "scaled")
    assert scaled["x"] == {"feature": "tokens", "center": 49.5, "scale": pytest.approx(49.5 / 1.349)}
    cells = list(csv.DictReader(io.StringIO(local.call("GET", f"{P}/log?format=csv").body.decode())))
    frame = pl.read_parquet(io.BytesIO(local.call("GET", f"{P}/log?format=parquet").body))
    for found in ([row["x"] for row in cells], frame["x"].to_list()):
        assert [json.loads(x) if x else None for x in found] == [row["x"] for row in rows]


def test_there_is_no_allocation(made):
    refused = made.call("GET", f"{P}/allocation")
    assert (refused.status, refused.json["code"]) == (409, "no-allocation")
    assert "ask the service for each decision" in refused.json["detail"]


# --- the dashboard ------------------------------------------------------------------------------------------------------


def test_the_page_shows_traffic_effects_and_what_would_be_decided(made):
    play(made, 60)
    person = Person(made)
    text = words(person.get("/experiments/p").body)
    assert re.search(r"Traffic by category category decisions share of the arms most used region=eu 30 a \d", text)
    assert "Of the newest 60 decisions." in text
    assert re.search(r"Effect of each feature feature [ab] [ab] tokens ", text)
    assert "features tokens, region" in text
    assert "chance mean width" not in text
    asked = words(person.get("/experiments/p?" + urlencode({"context": json.dumps(CONTEXT)})).body)
    assert re.search(r"What if .* arm chance mean width a 100 % [\d.]+ [\d.]+ b 0.0 % ", asked)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("{", "context must be JSON"),
        ("[1]", "an object with the features"),
        ('{"tokens": 1}', "a value for &#x27;region&#x27;"),
        ('{"tokens": 1, "region": "<b>"}', "&lt;b&gt;"),
        ('{"tokens": 1e999, "region": "eu"}', "context must be JSON"),
        ("[" * 5000, "context must be JSON"),
        ("\ud800", None),
    ],
)
def test_bad_contexts_in_the_box(made, context, said):
    answer = Person(made).get("/experiments/p?" + urlencode({"context": context}, errors="replace"))
    assert answer.status == 200
    page = answer.body.decode()
    assert (said or "context must be JSON") in page
    assert "<b>" not in page
    assert "chance</th>" not in page.partition("What if")[2]


def test_pages_of_new_experiments_and_without_features(local):
    local.call("PUT", P, MADE | {"features": {"tokens": {"type": "number"}}, "policy": "PerCell(UCB1())"})
    person = Person(local)
    page = person.get("/experiments/p").body.decode()
    assert "What if" in page
    assert "Traffic by category" not in page
    assert "Effect of each feature" not in page
    local.call("PUT", "/v1/experiments/q", {"arms": ["a", "b"]})
    assert "What if" not in person.get("/experiments/q?context=1").body.decode()


def test_the_page_of_a_decision_shows_the_encoded_features(made):
    play(made, 4)
    text = words(Person(made).get("/experiments/p/decision?id=d3").body)
    assert re.search(r"estimated mean width chance a ", text)
    assert re.search(r"intercept 1 tokens 0\.06 region=eu 0 region=us 1", text)


def test_the_form(local):
    person = Person(local)
    form = {"name": "p", "arms": "a\nb", "features": json.dumps(FEATURES)}
    assert person.send("/new", "/new", form).status == 303
    settings = local.call("GET", P).json["settings"]
    assert (list(settings["features"]), settings["policy"]) == (list(FEATURES), "AdaClipTS(d=4, shared=False)")
    for text in ("tokens", '{"tokens": "number"}', "[]", '{"tokens": {"type": "number", "logg": 1}}'):
        refused = person.send("/new", "/new", form | {"name": "other", "features": text})
        assert refused.status == 422
        assert 'name="features" aria-describedby="features-hint message" aria-invalid="true"' in refused.body.decode()


def test_many_arms_have_a_warning(local):
    many = [f"a{i}" for i in range(51)]
    ways_out = ({"policy": "LinEpsilonGreedy"}, {"policy": "AdaClipUCB", "floor": 0.1})
    for other, said in (({}, 1), ({"floor": 0.1}, 1), ({"arms": many[:50]}, 0), *((each, 0) for each in ways_out)):
        assert local.call("PUT", P, MADE | {"arms": many, "policy": None} | other).status == 201
        assert sum("AdaClipUCB" in each for each in local.call("GET", P).json["warnings"]) == said
        local.call("DELETE", P)
