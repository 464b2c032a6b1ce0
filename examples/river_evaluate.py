"""Compare Robandit's policies with river's own in `river.bandit.evaluate`. Needs ``pip install "robandit[river]"``.

There are three servers, and the reward is minus the latency. Latencies are heavy-tailed: a few requests take a hundred times as
long.
"""

from collections import Counter, defaultdict
from typing import Any

import gymnasium
from river import bandit

import robandit as rb
from robandit.river import RiverPolicy

LATENCIES = (1.0, 1.3, 1.6)  # mean latencies; the first server is best
TAIL = 1.5  # tail index of the Pareto law: infinite variance
PULLS, EPISODES = 2_000, 10


class Servers(gymnasium.Env[Any, Any]):
    action_space = gymnasium.spaces.Discrete(len(LATENCIES))
    observation_space = gymnasium.spaces.Discrete(1)
    pulls = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.pulls = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        latency = LATENCIES[action] * (TAIL - 1.0) / TAIL * (1.0 + self.np_random.pareto(TAIL))
        self.pulls += 1
        return 0, -latency, False, self.pulls == PULLS, {}


policies = {
    "Robandit AdaKL-UCB": RiverPolicy(rb.AdaKLUCB()),
    "river UCB": bandit.UCB(delta=1, seed=1),
    "river EpsilonGreedy": bandit.EpsilonGreedy(epsilon=0.1, seed=1),
}
regret: dict[str, float] = defaultdict(float)
best: Counter[str] = Counter()
for step in bandit.evaluate(list(policies.values()), Servers(), n_episodes=EPISODES, seed=1):
    name = list(policies)[step["policy_idx"]]
    regret[name] += (LATENCIES[step["arm"]] - LATENCIES[0]) / EPISODES
    best[name] += step["arm"] == 0

print(f"{PULLS} pulls, means over {EPISODES} episodes")
print(f"{'policy':<20} {'regret':>8} {'best arm':>9}")
for name in policies:
    print(f"{name:<20} {regret[name]:>8.1f} {best[name] / (PULLS * EPISODES):>9.1%}")
