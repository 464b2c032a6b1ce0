"""The live bandit: a policy at work on named arms, its saved form, and its memory of rewards."""
