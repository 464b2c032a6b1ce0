"""The live bandit, which runs a policy on named arms: its decisions, events, saved form and memory of rewards."""
