"""Names that do not exist get a hint: the closest name, or ours for the name of another library."""

import copy
import inspect
import pickle
import re
import sys
import traceback
import warnings
from unittest.mock import Mock

import pytest

import robandit as rb
from robandit import hints
from robandit.client import AsyncClient, AsyncExperiment, Client, Experiment
from robandit.errors import AssumptionWarning
from robandit.estimators import adaptive_trimmed_mean, catoni_mean, sample_mean, trimmed_mean, truncated_mean
from robandit.hints import close, guided
from robandit_client.hints import CLIENT, EXPERIMENT

OWNERS = [
    (rb.Bandit, hints.BANDIT),
    (Client, CLIENT),
    (AsyncClient, CLIENT),
    (Experiment, EXPERIMENT),
    (AsyncExperiment, EXPERIMENT),
]


def test_close_matches_are_only_close_ones():
    assert close("ucb", ["UCB1", "AdaRUCB"]) == ["UCB1"]
    assert close("zebra", ["UCB1", "AdaRUCB"]) == []


def test_another_word_stands_for_ours_only_if_it_is_the_same_and_ours_is_known():
    assert close("reps", ["replications"], hints.PARAMETERS) == ["replications"]
    assert close("eps", ["replications"], hints.PARAMETERS) == []  # similar to reps
    assert close("random_state", ["arms"], hints.PARAMETERS) == []


def test_long_words_are_compared_with_none():
    """The comparison takes quadratic time."""
    assert close("UCB1" + "x" * 200, ["UCB1" + "x" * 201]) == []
    assert close("x" * 200, ["X" * 200]) == ["X" * 200]  # equal but for case: no comparison


# --- names of the package ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("UCB", "UCB1"),
        ("ThompsonSampling", "GaussianTS"),
        ("EXP3", "HTINF"),
        ("KLinf", "KLinfUCB"),
        ("epsilon_greedy", "EpsilonGreedy"),
        ("AdaRUBC", "AdaRUCB"),
        ("simulat", "simulate"),
        ("Client", "robandit.client.Client"),
        ("catoni_mean", "robandit.estimators.catoni_mean"),
        ("InvalidInput", "robandit.errors.InvalidInput"),
    ],
)
def test_a_name_that_the_package_does_not_have(name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(rb, name)
    assert str(caught.value) == f"module 'robandit' has no attribute {name!r} (did you mean {meant}?)"
    assert caught.value.name == name
    printed = "".join(traceback.format_exception(caught.value))
    assert printed.casefold().count("did you mean") == 1  # Python adds none of its own
    assert not hasattr(rb, name)
    with pytest.raises(ImportError) as caught:
        exec(f"from robandit import {name}")
    assert str(caught.value) == f"cannot import name {name!r} from 'robandit' (did you mean {meant}?)"
    assert caught.value.name == "robandit"


def test_a_name_that_resembles_none_has_no_hint():
    with pytest.raises(AttributeError, match=r"^module 'robandit' has no attribute 'xyzzy'$"):
        _ = rb.xyzzy
    with pytest.raises(ImportError, match=r"^cannot import name 'xyzzy' from 'robandit'$"):
        exec("from robandit import xyzzy")


@pytest.mark.parametrize("name", ["a.b", "estimators.nothing", "", "a b", "1"])
def test_what_is_not_a_name_is_no_attribute(name):
    assert not hasattr(rb, name)
    assert getattr(rb, name, 5) == 5


@pytest.mark.parametrize("name", ["LinearUCB", "lin_ucb"])
def test_a_contextual_policy_is_found(name):
    with pytest.raises(AttributeError, match=r"did you mean LinUCB\?"):
        getattr(rb, name)


def test_modules_that_are_not_public_names_can_be_imported(monkeypatch):
    for name in ("wording", "client"):
        monkeypatch.delattr(rb, name, raising=False)
        monkeypatch.delitem(sys.modules, f"robandit.{name}", raising=False)
        names = {}
        exec(f"from robandit import {name}", names)
        assert names[name].__name__ == f"robandit.{name}"


def test_an_estimator_that_does_not_exist():
    with pytest.raises(AttributeError, match=r"no attribute 'catonimean' \(did you mean catoni_mean\?\)$"):
        _ = rb.estimators.catonimean


def test_every_name_of_another_library_stands_for_one_of_ours():
    assert set(hints.NAMES.values()) <= set(rb.__all__)
    assert set(hints.POLICIES.values()) <= set(rb.policies.policy_names())
    assert not set(hints.NAMES) & set(rb.__all__)


# --- methods ----------------------------------------------------------------------------------------------------------


def test_a_method_by_its_name_in_another_library():
    bandit = rb.Bandit(["a", "b"], compile="never")
    with pytest.raises(AttributeError) as caught:
        bandit.remove_arm("a")
    message = "'Bandit' object has no attribute 'remove_arm': use retire_arm(arm), or pause_arm(arm) for a while"
    assert str(caught.value) == message
    printed = "".join(traceback.format_exception(caught.value))
    assert "Did you mean" not in printed  # Python would suggest resume_arm
    with pytest.raises(
        AttributeError, match=r"'Client' object has no attribute 'decide': use experiment\(name\)\.decide"
    ):
        Client("http://127.0.0.1:1").decide()


@pytest.mark.parametrize(("owner", "methods"), OWNERS)
def test_the_methods_that_are_named_instead_exist(owner, methods):
    for instead, names in methods.items():
        called = re.findall(r"(?<!\.)\b(\w+)\(", instead)
        assert called, instead
        assert all(callable(getattr(owner, each, None) or getattr(rb, each, None)) for each in called), instead
        for later in re.findall(r"experiment\(name\)\.(\w+)\(", instead):
            assert callable(getattr(Experiment, later))
        for name in names:
            assert not hasattr(owner, name), name


def test_the_names_of_other_libraries_are_no_attributes():
    bandit = rb.Bandit(["a", "b"], rb.UCB1(), compile="never")
    others = {name for names in hints.BANDIT.values() for name in names}
    assert not others & set(dir(bandit))
    assert not others & {name for name, _ in inspect.getmembers(bandit)}
    assert {"select", "update", "arms"} <= set(dir(bandit))
    bandit.pull = "mine"  # a user's own attribute
    assert bandit.pull == "mine"
    assert "pull" in dir(bandit)
    mine = type("Mine", (rb.Bandit,), {"pull": rb.Bandit.select})(["a"], compile="never")
    assert mine.pull() == "a"
    assert others & set(dir(mine)) == {"pull"}
    assert not hasattr(Mock(spec=rb.Bandit(["a"], compile="never")), "pull")
    assert "__getattr__" not in vars(rb.Bandit)  # it would make every attribute of a bandit slower


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.Bandit(["a"], minimise=True), "Bandit() got an unexpected keyword argument 'minimise' (did you mean mini"),
        (lambda: rb.Bandit(["a"], random_state=1), "'random_state' (did you mean seed?): it has arms, policy, seed, minimize"),
        (lambda: rb.simulate(seeds=1), "simulate() got an unexpected keyword argument 'seeds' (did you mean seed?)"),
        (lambda: rb.simulate(replication=9), "'replication' (did you mean replications?)"),
        (lambda: rb.UCB1(scal=2.0), "UCB1() got an unexpected keyword argument 'scal' (did you mean scale?): it has scale"),
        (lambda: rb.UCB1(2.0), "UCB1() takes 1 positional argument but 2 were given: give parameters by name; it has scale"),
        (lambda: rb.problems.pareto([1.0, 2.0], tail_index=1.5), "'tail_index' (did you mean tail?): it has means, tail"),
        (lambda: rb.Problem([], minimise=True), "Problem() got an unexpected keyword argument 'minimise' (did you mean mini"),
        (lambda: Client("http://127.0.0.1:1", api_key="k"), "'api_key' (did you mean key?): it has url, key, fallback"),
        (lambda: AsyncClient("http://127.0.0.1:1", time_out=1), "'time_out' (did you mean timeout?)"),
        (lambda: trimmed_mean([1.0], treshold=2.0), "'treshold' (did you mean threshold?): it has x, threshold and axis"),
        (
            lambda: catoni_mean([1.0, 2.0]),
            "catoni_mean() missing 1 required keyword-only argument: 'v'. v: A bound on the variance that you know without "
            "``x``, such as from older data. Without one, use `adaptive_trimmed_mean`.",
        ),
        (lambda: truncated_mean([1.0], eps=0.5), "argument: 'u'. u: A known bound E|x|^(1+eps) <= u with 0 < eps <= 1."),
        (lambda: truncated_mean([1.0], 0.5), "truncated_mean() takes 1 positional argument but 2 were given: give parameters by"),
        (lambda: rb.problems.pareto([1.0], 1.5, True, 2), "4 were given: give parameters by name; it has means, tail and mini"),
        (lambda: rb.Bandit(["a"], maximize=True), "unexpected keyword argument 'maximize': it has arms, policy"),
        (lambda: rb.Bandit(["a"], direction="min"), "unexpected keyword argument 'direction': it has arms, policy"),
        (lambda: sample_mean([1.0], confidence=0.95), "unexpected keyword argument 'confidence': it has x, delta"),
        (lambda: sample_mean([1.0], alpha=0.05), "unexpected keyword argument 'alpha': it has x, delta"),
        (lambda: Client(), "argument: 'url'. url: The address of the service, such as"),
    ],
)  # fmt: skip
def test_a_call_with_wrong_parameters(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_every_public_constructor_and_function_guides_its_callers():
    """The error of each lists its parameters: none was forgotten."""
    called = [getattr(rb, name) for name in rb.policies.policy_names()]
    called += [rb.Bandit, rb.simulate, rb.recommend, rb.precompile, Client, AsyncClient]
    for module in (rb.problems, rb.estimators):
        called += [getattr(module, name) for name in module.__all__]
    results = (rb.estimators.Estimate, rb.estimators.ConfidenceInterval)  # which users do not make
    called = [each for each in called if each not in results]
    assert len(called) > 60
    for each in called:
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'zyzzyva': it has \w"):
            each(zyzzyva=1)


def test_an_error_inside_a_function_is_not_changed():
    @guided
    def fails(x):
        raise TypeError("own words")

    @guided
    def calls(x):
        return len(x, 1)

    with pytest.raises(TypeError, match=r"^own words$"):
        fails(1)
    with pytest.raises(TypeError, match=r"^len\(\) takes exactly one argument \(2 given\)$"):
        calls("a")


def test_guided_functions_and_classes_stay_what_they_are():
    for each in (catoni_mean, rb.simulate, rb.Bandit, rb.UCB1):
        assert pickle.loads(pickle.dumps(each)) is each
    assert copy.deepcopy(rb.UCB1(scale=2.0)) == pickle.loads(pickle.dumps(rb.UCB1(scale=2.0))) == rb.UCB1(scale=2.0)
    assert list(inspect.signature(catoni_mean).parameters) == ["x", "v", "delta", "bonus", "axis"]
    assert next(iter(inspect.signature(rb.Bandit).parameters)) == "arms"
    assert catoni_mean.__doc__.startswith("Catoni")
    assert "v: float" in inspect.getsource(catoni_mean)


def test_a_warning_of_a_guided_function_is_about_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        adaptive_trimmed_mean([1.0 + 0.01 * i for i in range(500)])
    assert [(each.category, each.filename) for each in caught] == [(AssumptionWarning, __file__)]
