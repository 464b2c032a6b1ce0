"""The router: what an application with several LLM providers has to write."""

from collections.abc import Callable

from providers import PROMPTS, PROVIDERS, HungUp, ProviderTimeout, Reply

from robandit.client import Client, Decision

WAITING = 0.5  # what a second of waiting costs, in cents
FAILURE = 5.0  # what a call without an answer costs, in cents


class Router:
    """Chooses a provider for each request, and a prompt for each conversation."""

    def __init__(self, client: Client, seed: int, window: float) -> None:
        """Create the experiments, or continue with those that exist."""
        self.chat = client.create(
            "chat",
            list(PROVIDERS),
            minimize=True,
            unit="cents",
            policy="Restarting(AdaKLUCB(), rate=0.5)",  # forgets what it has learned when a provider changes
            seed=seed,
            reward_window=window,
        )
        self.prompt = client.create(
            "prompt",
            list(PROMPTS),
            unit="dollars",
            policy="AdaRUCB()",  # a wrong choice: it assumes costs, and revenue contradicts that. The service warns.
            seed=seed,
            reward_window=window,
        )

    def answer(self, call: Callable[[str], Reply]) -> None:
        """Answer a request, and report what it cost, including the wait."""
        decision = self.chat.decide(fallback="cirrus")
        try:
            reply = call(decision.arm)
        except ProviderTimeout:
            self.chat.reward(decision, FAILURE)
        except HungUp:
            pass  # nobody knows what it would have cost, so the decision expires
        else:
            self.chat.reward(decision, reply.cents + WAITING * reply.seconds)

    def begin(self) -> Decision:
        """Choose the prompt of a conversation. Keep the id until the conversation has ended."""
        return self.prompt.decide(fallback="brief")

    def end(self, id: str, dollars: float) -> None:
        """Report what the customer of a conversation has spent."""
        self.prompt.reward(id, dollars)
