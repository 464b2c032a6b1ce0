"""KLinf-UCB and its index."""

from robandit.policies.klinf.upper_bound import klinf_index

__all__ = ["klinf_index"]
