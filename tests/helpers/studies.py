"""Studies of recorded rewards whose pages are looked at in tests."""

from functools import cache

import numpy as np

from robandit.diagnostics.study import study
from robandit.recorded import Log
from robandit.recorded.summary import ArmRecord, BadRows, Recorded

HOSTILE = "</script><img src=x onerror=hacked=1>\"'&"


@cache
def plain():
    """Three arms: a heavy left tail, a light one, and one with too few rewards."""
    rng = np.random.default_rng(0)
    arms = {
        "heavy": -(rng.pareto(1.3, 4000) + 1.0),
        "light": rng.normal(size=1500) - 4.0,
        "few": [-3.0, -4.0],
    }
    recorded = Recorded.of(arms, source="latency.csv")
    bad = BadRows(3, ((17, "the reward is 'n/a'"), (21, f"the arm is {HOSTILE}")), "line")
    return study(Recorded(recorded.arms, recorded.rows, bad, recorded.source))


@cache
def costs():
    """The rewards of `plain` as costs that are minimised."""
    recorded = Recorded.of({arm.arm: -arm.record.sample for arm in plain().arms}, source="latency.csv", minimize=True)
    return study(recorded)


@cache
def drifting():
    """Costs of three arms with times: a is best in the first half, c in the second."""
    rng = np.random.default_rng(5)
    means = np.array([[10.0, 14.0, 30.0], [30.0, 14.0, 10.0]])
    actions = rng.integers(0, 3, 1_800)
    costs = means[np.arange(1_800) // 900, actions] * rng.lognormal(-0.08, 0.4, 1_800)
    times = np.datetime64("2024-01-01", "s") + 3_600 * np.arange(1_800)
    log = Log(("a", "b", "c"), actions, costs, None, times=times)
    samples = {arm: costs[actions == i] for i, arm in enumerate(log.arms)}
    return study(Recorded.of(samples, source="drift.csv", minimize=True), log=log)


@cache
def hostile():
    """Names that would be markup, turn text round, fill the screen, or move a cursor."""
    rng = np.random.default_rng(1)
    names = [HOSTILE, "x" * 3000, "שלום \u202eevil", "", "\x1b[31mred\nline", "[bold]b[/bold]"]
    return study(Recorded.of({name: rng.standard_t(2.0, 120) for name in names}, source=HOSTILE))


@cache
def many():
    rng = np.random.default_rng(2)
    return study(Recorded.of({f"arm {i:03d}": rng.normal(size=110 + i) for i in range(40)}, source="many.csv"))


@cache
def extreme():
    """The largest and the smallest numbers, one value, equal values."""
    rng = np.random.default_rng(3)
    arms = {
        "huge": rng.standard_cauchy(1000) * 1e140,
        "tiny": rng.normal(size=300) * 1e-120,
        "one": [1.0],
        "equal": [0.0] * 200,
    }
    return study(Recorded.of(arms))


@cache
def sampled():
    """One arm whose record is a sample, without its extremes."""
    values = np.random.default_rng(4).pareto(2.5, 20_000)
    ordered = np.sort(values)
    record = ArmRecord(
        arm="a",
        n=len(values),
        zeros=0,
        mean=float(values.mean()),
        least=float(ordered[0]),
        greatest=float(ordered[-1]),
        sample=values[:4000],
        whole=False,
        smallest=ordered[:1000],
        largest=ordered[::-1][:1000],
    )
    return study(Recorded((record,), len(values), BadRows(), "big.parquet"))
