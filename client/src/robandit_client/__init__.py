"""Clients of Robandit's decision service, with the standard library only: `Client` blocks, `AsyncClient` is for asyncio."""

from robandit_client.async_client import AsyncClient, AsyncExperiment
from robandit_client.client import Client, Experiment
from robandit_client.edge import Edge, EdgeDecision
from robandit_client.errors import (
    AccessDenied,
    BatchError,
    Conflict,
    InvalidInput,
    InvalidReward,
    NotFound,
    Overloaded,
    RobanditError,
    ServiceUnavailable,
    Undelivered,
)
from robandit_client.values import Allocation, Decision, DecisionRequest, Observation, Rejection, Report, Reward

__version__ = "0.2.0"
__all__ = [
    "AccessDenied",
    "Allocation",
    "AsyncClient",
    "AsyncExperiment",
    "BatchError",
    "Client",
    "Conflict",
    "Decision",
    "DecisionRequest",
    "Edge",
    "EdgeDecision",
    "Experiment",
    "InvalidInput",
    "InvalidReward",
    "NotFound",
    "Observation",
    "Overloaded",
    "Rejection",
    "Report",
    "Reward",
    "RobanditError",
    "ServiceUnavailable",
    "Undelivered",
]
