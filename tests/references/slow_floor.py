"""A floor as its description has it: fractions, and lists over all arms."""

from fractions import Fraction


class SlowFloor:
    """``named`` maps arms to their shares of all decisions; the rest of ``share`` is uniform."""

    def __init__(self, share, named):
        self.share = Fraction(share)
        self.named = {arm: Fraction(part) for arm, part in named.items()}

    def distribution(self, allowed):
        """Return the probability of each arm, given that the floor draws; an empty dict if there is no floor."""
        rest = self.share - sum(self.named.values())
        weights = {arm: self.named.get(arm, Fraction(0)) + rest / len(allowed) for arm in allowed}
        total = sum(weights.values())
        return {arm: weight / total for arm, weight in weights.items()} if total else {}

    def choose(self, allowed, own, first, second):
        """Return the arm for two numbers from (0, 1], where the policy itself chooses ``own``."""
        pi = self.distribution(allowed)
        if not pi or Fraction(first) > self.share:
            return own
        below = Fraction(0)
        for arm in allowed:
            below += pi[arm]
            if Fraction(second) <= below:
                return arm
        raise AssertionError("the probabilities sum to 1")

    def chance(self, allowed, own, arm):
        """Return the probability of an arm. ``own`` has that of the policy itself for each arm."""
        pi = self.distribution(allowed)
        if not pi:
            return own[arm]
        return self.share * pi.get(arm, 0) + (1 - self.share) * Fraction(own[arm])
