"""Clients of the decision service: those of the package `robandit_client`, which needs only the standard library."""

from robandit_client import (
    AsyncClient,
    AsyncExperiment,
    Client,
    Decision,
    DecisionRequest,
    Experiment,
    Rejection,
    Report,
    Reward,
)

__all__ = [
    "AsyncClient",
    "AsyncExperiment",
    "Client",
    "Decision",
    "DecisionRequest",
    "Experiment",
    "Rejection",
    "Report",
    "Reward",
]
