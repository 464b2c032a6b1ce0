"""Damaged specs, notation and run folders: they give an answer or an error of Robandit, and no other exception."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.fuzzing import NASTY, as_json, damaged, more, read_or_refused, warped
from robandit.experiments.ledger import FOLDERS
from robandit.experiments.notation import policies_from, problem_from
from robandit.experiments.own_code import import_modules
from robandit.experiments.results import Failure
from robandit.experiments.spec import EXAMPLE, Spec, read_spec
from robandit.experiments.store import Store, _checksum

GOLDEN = Path(__file__).parents[1] / "golden"
PLAN = Store.open(GOLDEN / "run.format1").plan
SPECS = (
    EXAMPLE,
    (GOLDEN / "spec.v1.toml").read_text(),
    'policies = ["UCB1", {policy = "APE2", grid = {c = [0.5, 1.0]}}]\nhorizons = [10]\nseed = 3\n'
    'problems = [{problem = "gaussian(means=[1.0, 0.0])", name = "g", grid = {sd = [1.0, 2.0]}}]\n',
)
TEXTS = (
    'AdaRUCB(bonus="tight", c=2.0)',
    "RobustUCB(estimator='truncated', eps=0.5, u=1)",
    "negated_pareto(means=[-1.0, -1.5], tail=1.5)",
    "heavy/pareto-1.6",
    "lower_bound_family(arms=3, eps=0.5, u=1.0, horizon=1000, best=2)",
)


@more(60)
@given(st.sampled_from(SPECS).flatmap(lambda text: damaged(text.encode())))
def test_damaged_specs(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_bytes(content)
    read_or_refused(read_spec, path)


@more(60)
@given(st.sampled_from(TEXTS).flatmap(lambda text: damaged(text.encode())))
def test_damaged_notation(content):
    text = content.decode(errors="surrogateescape")
    read_or_refused(policies_from, text)
    read_or_refused(problem_from, text)


@cases("value", sorted({bytes(n).decode(errors="ignore") for n in NASTY}))
@cases("place", ["UCB1(scale=%s)", "%s", "gaussian(means=[1.0, %s])", "gaussian(%s)", "heavy/%s"])
def test_strange_parameters(place, value):
    for read in (policies_from, problem_from):
        read_or_refused(read, place % value)


@more(60)
@given(
    warped(
        {
            "policies": ["UCB1", {"policy": "APE2", "grid": {"c": [0.5, 1.0]}}],
            "problems": [{"problem": "gaussian(means=[1.0, 0.0])", "name": "g", "grid": {"sd": [1.0, 2.0]}}],
            "suites": ["light"],
            "horizons": [10, 20],
            "seed": 1,
            "replications": 2,
            "eps": 0.5,
        }
    )
)
def test_specs_of_other_things(data):
    if isinstance(data, dict) and set(data) <= set(Spec.__struct_fields__) and "policies" in data:
        read_or_refused(lambda: Spec(**data))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run folder with one failed unit."""
    place = tmp_path_factory.mktemp("fuzz") / "run"
    shutil.copytree(GOLDEN / "run.format1", place)
    for name in FOLDERS:  # git does not store empty folders
        (place / name).mkdir(exist_ok=True)
    store = Store.open(place)
    unit = store.plan.units[-1]
    store.ledger.part(unit).unlink()
    store.ledger.fail(Failure(unit, 3, "Traceback (most recent call last): ..."))
    return place


def open_folder(place):
    store = Store.open(place)
    store.about, store.failures(), store.results()


RUN = (GOLDEN / "run.format1" / "run.json").read_bytes()
NEW = json.loads((GOLDEN / "run.format2" / "run.json").read_bytes())


def with_checksum(data):
    """Return crafted data with the right checksum, if they can have one."""
    content = as_json(data)
    with suppress(ValueError, TypeError, RecursionError):
        read = json.loads(content)
        return as_json(read | {"checksum": _checksum(read)})
    return content


@more(90)
@given(content=warped(json.loads(RUN)).map(as_json) | warped(NEW).map(with_checksum) | damaged(RUN))
def test_damaged_run_folders(folder, content):
    import_modules(["golden_policy"], GOLDEN)
    (folder / "run.json").write_bytes(content)
    read_or_refused(open_folder, folder)
    read_or_refused(lambda: Store.create(folder, PLAN))


OTHERS = ("spec.toml", "parts", "times", "failures")


@more(30)
@given(data=st.data(), name=st.sampled_from(OTHERS))
def test_damaged_files_in_run_folders(folder, data, name):
    path = folder / name
    path = path if path.is_file() else min(path.iterdir())
    whole = path.read_bytes()
    (folder / "run.json").write_bytes(RUN)
    try:
        path.write_bytes(data.draw(damaged(whole)))
        read_or_refused(open_folder, folder)
    finally:
        path.write_bytes(whole)
    open_folder(folder)
