"""Hints about names that do not exist: the closest known names, and the names that other libraries have for ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from robandit_client.hints import CHOOSE, LEARN
from robandit_client.hints import PARAMETERS as PARAMETERS
from robandit_client.hints import close as close
from robandit_client.hints import guided as guided
from robandit_client.hints import other_names as other_names
from robandit_client.hints import question as question

POLICIES = {
    "BayesUCB": "GaussianTS",
    "EGreedy": "EpsilonGreedy",
    "EpsGreedy": "EpsilonGreedy",
    "Exp3": "HTINF",
    "Greedy": "EpsilonGreedy",
    "LinearTS": "LinTS",
    "LinearUCB": "LinUCB",
    "LinUCBDisjoint": "LinUCB",
    "LinTSDisjoint": "LinTS",
    "MOSS": "RobustMOSS",
    "Random": "Uniform",
    "RandomPolicy": "Uniform",
    "Thompson": "GaussianTS",
    "ThompsonSampling": "GaussianTS",
    "TS": "GaussianTS",
    "TsallisINF": "HTINF",
    "UCB": "UCB1",
    "UCBTuned": "UCBV",
}
"""Names of policies in other libraries, and the nearest policies here."""

NAMES = {
    **POLICIES,
    "BanditProblem": "Problem",
    "Environment": "Problem",
    "MAB": "Bandit",
    "MultiArmedBandit": "Bandit",
    "run": "simulate",
}
"""Names in other libraries, and ours in `robandit`."""

BANDIT = {
    "select()": CHOOSE,
    "update(arm, reward)": LEARN,
    "estimates()": ("best_arm", "recommend"),
    "add_arm(arm)": ("add",),
    "retire_arm(arm), or pause_arm(arm) for a while": ("remove_arm",),
    "Bandit(arms, policy), which makes a new one": ("reset",),
}
"""Our methods of `Bandit`, and their names in other libraries."""

_PLACES = ("client", "diagnostics", "errors", "estimators", "laws", "problems")


def unknown(
    what: str, word: str, known: Iterable[str], also: Mapping[str, str] | None = None, listing: str = ""
) -> str:
    """Return the message about an unknown word, with the closest known words, and all of them or where they are listed."""
    listing = listing or f"there are {', '.join(known)}"
    return f"{what} is not known{question(close(word, known, also))}: {listing}"


def name_hint(name: str, known: Sequence[str]) -> str:
    """Return a question about a name that `robandit` does not have: a public name of a component, or the closest name."""
    for place in _PLACES:
        if name in import_module(f"robandit.{place}").__all__:
            return question([f"robandit.{place}.{name}"])
    return question(close(name, known, NAMES))
