"""The live bandit, which runs a policy on named arms, with its saved form and its memory of rewards."""
