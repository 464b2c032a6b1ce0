"""Clients of Robandit's decision service, with the standard library only: `Client` blocks, `AsyncClient` is for asyncio."""

from robandit_client.async_client import AsyncClient, AsyncExperiment
from robandit_client.client import Client, Experiment
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
from robandit_client.values import Decision, DecisionRequest, Rejection, Report, Reward

__version__ = "0.2.0"
__all__ = [
    "AccessDenied",
    "AsyncClient",
    "AsyncExperiment",
    "BatchError",
    "Client",
    "Conflict",
    "Decision",
    "DecisionRequest",
    "Experiment",
    "InvalidInput",
    "InvalidReward",
    "NotFound",
    "Overloaded",
    "Rejection",
    "Report",
    "Reward",
    "RobanditError",
    "ServiceUnavailable",
    "Undelivered",
]
