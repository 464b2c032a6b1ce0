"""Clients of the decision service: those of the package `robandit_client`, which needs only the standard library."""

from robandit_client import (
    Allocation,
    AsyncClient,
    AsyncExperiment,
    Client,
    Decision,
    DecisionRequest,
    Edge,
    EdgeDecision,
    Experiment,
    Observation,
    Rejection,
    Report,
    Reward,
)

__all__ = [
    "Allocation",
    "AsyncClient",
    "AsyncExperiment",
    "Client",
    "Decision",
    "DecisionRequest",
    "Edge",
    "EdgeDecision",
    "Experiment",
    "Observation",
    "Rejection",
    "Report",
    "Reward",
]
