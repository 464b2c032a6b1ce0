"""The simulated world around the router: three LLM providers, and customers who may place an order.

Latencies, numbers of tokens and orders have heavy tails: finite means, infinite variances. What happens to the providers is a round
of five minutes that repeats. Nothing here waits: the time is a number that the caller sets.
"""

import random
from typing import NamedTuple

ROUND = 300.0  # seconds
SLOW_START, SLOW_END = 60.0, 240.0  # swift gets slower
RAMP, SLOWDOWN = 20.0, 6.0  # seconds until it is slowest, and how many times slower it is then
OUTAGE_START, OUTAGE_END = 135.0, 195.0  # all calls of atlas time out
STORY = {
    0.0: "all providers are well",
    SLOW_START: "swift gets slower: six times within 20 seconds",
    OUTAGE_START: "atlas fails: all its calls time out",
    OUTAGE_END: "atlas is back",
    SLOW_END: "swift is fast again",
}

SIGMA = 0.5  # latencies are log-normal,
LONG, LATENCY_TAIL = 0.05, 1.5  # and 5 % of them are multiplied by a Pareto variable with this tail index
TIMEOUT = 30.0  # seconds
FEWEST_TOKENS, TOKEN_TAIL = 200.0, 1.7
HANG_UPS = 0.01  # share of requests whose customer leaves before the answer
BUYERS, ORDER_TAIL = 0.2, 1.6  # share of conversations with an order, and the tail index of orders


class Provider(NamedTuple):
    """A provider when all is well. The router does not know these numbers."""

    seconds: float  # median latency
    cents: float  # per 1,000 tokens


PROVIDERS = {"swift": Provider(0.5, 0.4), "atlas": Provider(0.9, 0.3), "cirrus": Provider(1.6, 0.2)}
PROMPTS = {"brief": 20.0, "friendly": 30.0, "expert": 40.0}  # mean of an order, in dollars


class Reply(NamedTuple):
    """A provider's answer: how long it took, and what the provider charges."""

    seconds: float
    cents: float


class ProviderTimeout(Exception):
    """The provider did not answer within 30 seconds."""


class HungUp(Exception):
    """The customer left before the answer."""


def slowdown(name: str, second: float) -> float:
    """Return how many times slower than usual a provider is."""
    now = second % ROUND
    if name != "swift" or not SLOW_START <= now < SLOW_END:
        return 1.0
    return 1.0 + (SLOWDOWN - 1.0) * min((now - SLOW_START) / RAMP, 1.0)


def is_down(name: str, second: float) -> bool:
    """Return whether all calls of a provider time out."""
    return name == "atlas" and OUTAGE_START <= second % ROUND < OUTAGE_END


def latency(rng: random.Random, median: float) -> float:
    """Return a random latency with a heavy tail."""
    body, chance, factor = rng.lognormvariate(0.0, SIGMA), rng.random(), rng.paretovariate(LATENCY_TAIL)
    return median * body * (factor if chance < LONG else 1.0)


class World:
    """The providers and the customers. Set ``second`` before a call."""

    def __init__(self, seed: int) -> None:
        """Start at second 0."""
        self.second = 0.0
        self.calls = dict.fromkeys(PROVIDERS, 0)
        self._requests, self._orders = random.Random(f"requests {seed}"), random.Random(f"orders {seed}")

    def call(self, name: str) -> Reply:
        """Return the provider's answer, without the wait. A call draws the same random numbers whatever the provider."""
        self.calls[name] += 1
        provider, rng = PROVIDERS[name], self._requests
        seconds = latency(rng, provider.seconds * slowdown(name, self.second))
        tokens = FEWEST_TOKENS * rng.paretovariate(TOKEN_TAIL)
        if rng.random() < HANG_UPS:
            raise HungUp
        if seconds > TIMEOUT or is_down(name, self.second):
            raise ProviderTimeout
        return Reply(seconds, provider.cents * tokens / 1000.0)

    def conversation(self, prompt: str) -> tuple[float, float]:
        """Return when a new conversation will end, and how many dollars the customer will have spent."""
        rng = self._orders
        delay, chance, size = rng.lognormvariate(1.5, 0.8), rng.random(), rng.paretovariate(ORDER_TAIL)
        smallest = PROMPTS[prompt] * (ORDER_TAIL - 1.0) / ORDER_TAIL
        return self.second + delay, smallest * size if chance < BUYERS else 0.0
