"""Names, numbers and sentences about recorded rewards, for the page and for the terminal."""

from __future__ import annotations

import math

from robandit.diagnostics.study import Mean, Study
from robandit.diagnostics.words import words
from robandit.errors import formatted
from robandit.report.pieces import named
from robandit.wording import compact, counted, percent

OTHERS = 5  # the maximal number of other possible best arms with a line of advice


def arm_name(arm: str, most: int = 60) -> str:
    """Return the name of an arm. Quotes show invisible characters, so that different names look different.

    >>> arm_name("a"), arm_name(" a"), arm_name("a" + chr(9)), arm_name("")
    ('a', "' a'", "'a\\\\t'", '(empty)')
    """
    return named(arm if arm == arm.strip() and arm.isprintable() else repr(arm), most)


def limits(mean: Mean) -> str:
    """Format the confidence limits that exist."""
    low, high = math.isfinite(mean.low), math.isfinite(mean.high)
    if low and high:
        return f"{compact(mean.low, 3)} to {compact(mean.high, 3)}"
    return f"≥ {compact(mean.low, 3)}" if low else f"≤ {compact(mean.high, 3)}" if high else "none"


def share(value: float) -> str:
    """Format a share in %, but zero without the unit."""
    return "0" if value == 0.0 else percent(value)


def advice_lines(study: Study) -> list[str]:
    """Return the reasons for the recommended policy, and other arms that may be the best and are skewed in another way."""
    lines = [
        f"{formatted(each.arm)} may also be the best arm, and is another case: {each.case}."
        for each in study.also[:OTHERS]
    ]
    more = len(study.also) - len(lines)
    if more:
        lines.append(
            f"{counted(more, 'more arm')} may also be the best, and {'is' if more == 1 else 'are'} another case."
        )
    return [*study.advice.reasons, *lines]


def sampling_lines(study: Study) -> list[str]:
    """Return a line that names the numbers that come from a sample, if there are any."""
    sampled = [arm for arm in study.arms if not arm.record.whole]
    if not sampled:
        return []
    size = max(len(arm.record.sample) for arm in sampled)
    arms = counted(len(sampled), "arm") if len(study.arms) > 1 else "the arm"
    many = words(study.minimize).many
    return [
        f"For {arms}, counts, the mean and the farthest 1,000 {many} on each side are exact. The tail indices use these and "
        f"the sample. All other numbers come from a random sample of {size:,} {many}."
    ]
