"""All calls of the interface. The application, the OpenAPI document, the page /docs and the tests read this table."""

from __future__ import annotations

from typing import Any

from robandit.service import administration, bodies, decisions, experiments, health, logs
from robandit.service.http import Handler, Parameter, Route

_AFTER = Parameter(
    "after", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, "Return only what comes after this number (seq)."
)
_LIMIT = Parameter("limit", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, "The maximum number of rows.")
_FORMAT = Parameter("format", {"type": "string", "enum": list(logs.FORMATS)}, "The format. The default is ndjson.")
_LEARNED = Parameter(
    "learned", {"type": "string", "enum": ["true", "false"]}, "true: return only rewards that were learned."
)
_SUMMARY = {200: (bodies.Summary, "The experiment.")}


def _route(call: str, handler: Handler, scope: str | None, **options: Any) -> Route:
    """Return the route of a method and a path. The docstring of the handler says what it is for."""
    method, _, path = call.partition(" ")
    about = " ".join((handler.__doc__ or "").split())
    return Route(method=method, path=path, handler=handler, about=about, scope=scope, **options)


ROUTES = (
    _route(
        "PUT /v1/experiments/{name}",
        experiments.create,
        "admin",
        body=bodies.NewExperiment,
        answers={201: (bodies.Summary, "Created."), 200: (bodies.Summary, "It already exists with the same settings.")},
        problems=("conflict",),
    ),
    _route(
        "GET /v1/experiments",
        experiments.overview,
        "read",
        answers={200: (bodies.Experiments, "All of them, by name.")},
    ),
    _route(
        "GET /v1/experiments/{name}", experiments.show, "read", answers={200: (bodies.Experiment, "The experiment.")}
    ),
    _route("DELETE /v1/experiments/{name}", experiments.remove, "admin", answers={204: (None, "Deleted.")}),
    _route(
        "POST /v1/experiments/{name}/decisions",
        decisions.decide,
        "decide",
        body=bodies.NewDecision,
        body_required=False,
        answers={200: (bodies.Decision, "The decision. It is stored.")},
        problems=("conflict", "paused", "no-arm", "horizon-reached", "too-many-open"),
    ),
    _route(
        "POST /v1/experiments/{name}/decisions/batch",
        decisions.decide_batch,
        "decide",
        body=bodies.NewDecisions,
        answers={200: (bodies.Decisions, "An answer per item.")},
    ),
    _route(
        "GET /v1/experiments/{name}/decisions/{id}",
        decisions.explain,
        "read",
        answers={200: (bodies.Explanation, "The decision and its reasons.")},
        problems=("unknown-decision",),
    ),
    _route(
        "POST /v1/experiments/{name}/rewards",
        decisions.reward,
        "reward",
        body=bodies.NewReward,
        answers={200: (bodies.Reward, "Learned and stored."), 202: (bodies.Reward, "Stored as late, but not learned.")},
        problems=("unknown-decision", "conflict"),
    ),
    _route(
        "POST /v1/experiments/{name}/rewards/batch",
        decisions.reward_batch,
        "reward",
        body=bodies.NewRewards,
        answers={200: (bodies.Rewards, "An answer per item.")},
    ),
    _route(
        "POST /v1/experiments/{name}/arms",
        experiments.add_arm,
        "admin",
        body=bodies.NewArm,
        answers={201: (bodies.Summary, "Added.")},
        problems=("conflict",),
    ),
    _route(
        "PATCH /v1/experiments/{name}/arms/{arm}",
        experiments.change_arm,
        "admin",
        body=bodies.ArmState,
        answers=_SUMMARY,
        problems=("not-found", "conflict"),
    ),
    _route("POST /v1/experiments/{name}/pause", experiments.pause, "admin", answers=_SUMMARY),
    _route("POST /v1/experiments/{name}/resume", experiments.resume, "admin", answers=_SUMMARY),
    _route("POST /v1/experiments/{name}/reset", experiments.reset, "admin", answers=_SUMMARY),
    _route(
        "GET /v1/experiments/{name}/log",
        logs.log,
        "read",
        query=(_AFTER, _LIMIT, _FORMAT, _LEARNED),
        answers={200: ("application/x-ndjson", "One event per line, oldest first.")},
    ),
    _route(
        "GET /v1/keys",
        administration.list_keys,
        "admin",
        answers={200: (bodies.Keys, "All keys, including expired and revoked ones.")},
    ),
    _route(
        "POST /v1/keys",
        administration.create_key,
        "admin",
        body=bodies.NewKey,
        answers={201: (bodies.MadeKey, "The key.")},
    ),
    _route(
        "DELETE /v1/keys/{id}",
        administration.revoke_key,
        "admin",
        answers={200: (bodies.Key, "Revoked.")},
        problems=("not-found",),
    ),
    _route(
        "GET /v1/audit",
        administration.audit,
        "admin",
        query=(_AFTER,),
        answers={200: (bodies.AuditLog, "The next 1,000 entries, oldest first.")},
    ),
    _route("GET /metrics", health.metrics, "read", answers={200: ("text/plain", "The text format of Prometheus.")}),
    _route("GET /healthz", health.healthz, None, answers={200: (bodies.Health, "Alive.")}, early=True),
    _route(
        "GET /readyz",
        health.readyz,
        None,
        answers={200: (bodies.Health, "Ready."), 503: (bodies.Health, "Not ready, and why.")},
        early=True,
    ),
)
"""Every call except /docs and /openapi.json."""
