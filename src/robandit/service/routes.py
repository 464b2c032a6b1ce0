"""All calls of the interface. The application, the OpenAPI document, the page /docs and the tests read this table."""

from __future__ import annotations

from typing import Any, TypeAlias

from robandit.service import administration, allocations, bodies, decisions, experiments, health, logs
from robandit.service.http import Handler, Parameter, Route

_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_FLAG = {"type": "string", "enum": ["true", "false"]}
_AFTER = Parameter("after", _NUMBER, "Return only what comes after this number (seq).")
_LIMIT = Parameter("limit", _NUMBER, "The maximum number of rows.")
_FORMAT = Parameter("format", {"type": "string", "enum": list(logs.FORMATS)}, "The format. The default is ndjson.")
_LEARNED = Parameter("learned", _FLAG, "true: return only rewards that were learned.")
_FOR = Parameter(
    "for",
    {"type": "string", "pattern": allocations.DURATION.pattern},
    "How long it will be used, from 100ms to 1h, such as 10s. The default is 1s.",
)
_NAME = "/v1/experiments/{name}"


def _route(call: str, handler: Handler, scope: str | None, body: type[Any] | None = None, **options: Any) -> Route:
    """Return the route of a method and a path. The docstring of the handler says what it is for."""
    method, _, path = call.partition(" ")
    about = " ".join((handler.__doc__ or "").split())
    answers, problems = _ANSWERS[handler], tuple(_PROBLEMS.get(handler, "").split())
    made: dict[str, Any] = {"about": about, "answers": answers, "problems": problems}
    return Route(method=method, path=path, handler=handler, scope=scope, body=body, **made, **options)


_Answers: TypeAlias = dict[int, tuple[type[Any] | str | None, str]]
_SUMMARY: _Answers = {200: (bodies.Summary, "The experiment.")}
_ANSWERS: dict[Handler, _Answers] = {
    experiments.create: {
        201: (bodies.Summary, "Created."),
        200: (bodies.Summary, "It already exists with the same settings."),
    },
    experiments.overview: {200: (bodies.Experiments, "All of them, by name.")},
    experiments.show: {200: (bodies.Experiment, "The experiment.")},
    experiments.standing: {200: (bodies.Standing, "How the arms stand.")},
    experiments.remove: {204: (None, "Deleted.")},
    decisions.decide: {200: (bodies.Decision, "The decision. It is stored.")},
    decisions.decide_batch: {200: (bodies.Decisions, "An answer per item.")},
    decisions.explain: {200: (bodies.Explanation, "The decision and its reasons.")},
    decisions.reward: {
        200: (bodies.Reward, "Learned and stored."),
        202: (bodies.Reward, "Stored as late, but not learned."),
    },
    decisions.reward_batch: {200: (bodies.Rewards, "An answer per item.")},
    decisions.fail: {
        200: (bodies.Reward, "Learned and stored."),
        202: (bodies.Reward, "Stored as late, but not learned."),
    },
    decisions.fail_batch: {200: (bodies.Rewards, "An answer per item.")},
    allocations.allocation: {
        200: (bodies.Allocation, "The allocation. The header ETag has its version."),
        304: (None, "The version in If-None-Match is still the present one."),
    },
    allocations.observe_batch: {200: (bodies.Observed, "Counted and stored. Items that were refused are listed.")},
    experiments.add_arm: {201: (bodies.Summary, "Added.")},
    experiments.change_arm: _SUMMARY,
    experiments.pause: _SUMMARY,
    experiments.resume: _SUMMARY,
    experiments.reset: _SUMMARY,
    logs.log: {200: ("application/x-ndjson", "One event per line, oldest first.")},
    administration.list_keys: {200: (bodies.Keys, "All keys, including expired and revoked ones.")},
    administration.create_key: {201: (bodies.MadeKey, "The key.")},
    administration.revoke_key: {200: (bodies.Key, "Revoked.")},
    administration.audit: {200: (bodies.AuditLog, "The next 1,000 entries, oldest first.")},
    health.metrics: {200: ("text/plain", "The text format of Prometheus.")},
    health.healthz: {200: (bodies.Health, "Alive.")},
    health.readyz: {200: (bodies.Health, "Ready."), 503: (bodies.Health, "Not ready, and why.")},
}
"""Status -> the type of the body (or its media type, if it is not JSON), and when it occurs."""
_PROBLEMS: dict[Handler, str] = {
    experiments.create: "conflict",
    decisions.decide: "conflict paused no-arm horizon-reached too-many-open",
    decisions.explain: "unknown-decision",
    decisions.reward: "unknown-decision conflict",
    decisions.fail: "unknown-decision conflict",
    allocations.allocation: "paused no-arm",
    allocations.observe_batch: "unknown-allocation propensity conflict too-old",
    experiments.add_arm: "conflict",
    experiments.change_arm: "not-found conflict",
    administration.revoke_key: "not-found",
}
"""The codes of the problems that only some calls can have."""

ROUTES = (
    _route(f"PUT {_NAME}", experiments.create, "admin", bodies.NewExperiment),
    _route("GET /v1/experiments", experiments.overview, "read"),
    _route(f"GET {_NAME}", experiments.show, "read"),
    _route(f"DELETE {_NAME}", experiments.remove, "admin"),
    _route(f"POST {_NAME}/decisions", decisions.decide, "decide", bodies.NewDecision, body_required=False),
    _route(f"POST {_NAME}/decisions/batch", decisions.decide_batch, "decide", bodies.NewDecisions),
    _route(f"GET {_NAME}/decisions/{{id}}", decisions.explain, "read"),
    _route(f"POST {_NAME}/rewards", decisions.reward, "reward", bodies.NewReward),
    _route(f"POST {_NAME}/rewards/batch", decisions.reward_batch, "reward", bodies.NewRewards),
    _route(f"POST {_NAME}/failures", decisions.fail, "reward", bodies.NewFailure),
    _route(f"POST {_NAME}/failures/batch", decisions.fail_batch, "reward", bodies.NewFailures),
    _route(f"GET {_NAME}/allocation", allocations.allocation, "decide", query=(_FOR,)),
    _route(f"POST {_NAME}/observations/batch", allocations.observe_batch, "reward", bodies.NewObservations),
    _route(f"POST {_NAME}/arms", experiments.add_arm, "admin", bodies.NewArm),
    _route(f"PATCH {_NAME}/arms/{{arm}}", experiments.change_arm, "admin", bodies.ArmState),
    _route(f"POST {_NAME}/pause", experiments.pause, "admin"),
    _route(f"POST {_NAME}/resume", experiments.resume, "admin"),
    _route(f"POST {_NAME}/reset", experiments.reset, "admin"),
    _route(f"GET {_NAME}/standing", experiments.standing, "read"),
    _route(f"GET {_NAME}/log", logs.log, "read", query=(_AFTER, _LIMIT, _FORMAT, _LEARNED)),
    _route("GET /v1/keys", administration.list_keys, "admin"),
    _route("POST /v1/keys", administration.create_key, "admin", bodies.NewKey),
    _route("DELETE /v1/keys/{id}", administration.revoke_key, "admin"),
    _route("GET /v1/audit", administration.audit, "admin", query=(_AFTER,)),
    _route("GET /metrics", health.metrics, "read"),
    _route("GET /healthz", health.healthz, None, early=True),
    _route("GET /readyz", health.readyz, None, early=True),
)
"""Every call except /docs and /openapi.json."""
