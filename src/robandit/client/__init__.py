"""Clients of the decision service, with the standard library only: `Client` blocks, `AsyncClient` is for asyncio."""

from robandit.client.async_client import AsyncClient, AsyncExperiment
from robandit.client.client import Client, Experiment
from robandit.client.values import Decision, DecisionRequest, Rejection, Report, Reward

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
