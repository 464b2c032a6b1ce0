"""The live bandit: a policy at work on named arms, its saved form, its memory and its diagnosis."""
