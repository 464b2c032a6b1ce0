"""The run folder: it reads back equal, and a plan that cannot continue it is rejected with the reason."""

import dataclasses
import json
import math
import os
import shutil
import sys

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.invalid import raises
from helpers.small_plan import HORIZON, contents, small_plan
from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile
from robandit.experiments import plan as plan_module
from robandit.experiments.plan import Plan, Played, planned
from robandit.experiments.results import Failure, Results
from robandit.experiments.runner import run
from robandit.experiments.store import Store, _checksum
from robandit.files import read_sealed


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A store whose units are all done."""
    folder = tmp_path_factory.mktemp("run") / "folder"
    store = Store.create(folder, small_plan(), command="robandit run x.toml", spec_text='name = "é"\n')
    for unit in store.plan.units:
        store.ledger.keep(unit, unit.run())
    return store


@pytest.fixture
def copied(played, tmp_path):
    shutil.copytree(played.folder, tmp_path / "copy")
    return Store.open(tmp_path / "copy")


def edited(folder, **changes):
    path = folder / "run.json"
    data = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(data | {"checksum": _checksum(data)}))


# --- what is written is read ----------------------------------------------------------------------------------------


def test_a_folder_is_read_back(played):
    plan = small_plan()
    store = Store.open(played.folder)
    assert store == played
    assert store.plan == plan
    assert [unit.key for unit in store.plan.units] == [unit.key for unit in plan.units]
    results = store.results()
    fresh = Results.of(plan, [(unit, unit.run(), 0.0) for unit in plan.units])
    assert results.complete
    assert results.failures == ()
    for here, there in zip(results.measured, fresh.measured, strict=True):
        assert here.cell == there.cell
        assert (here.replications == np.arange(20)).all()
        assert (here.checkpoints == there.checkpoints).all()
        assert (here.regret == there.regret).all()
        assert (here.pulls == there.pulls).all()
        assert 0.0 < here.seconds < math.inf


def test_it_says_what_made_it(played):
    about = played.results().about
    assert about["command"] == "robandit run x.toml"
    assert about["versions"]["polars"] == pl.__version__
    assert about["versions"]["python"] == sys.version.split()[0]
    assert set(about["versions"]) == {"robandit", "python", "numpy", "numba", "polars"}
    assert about["machine"]["cores"] >= 1
    assert about["earlier"] == []
    assert (played.folder / "spec.toml").read_bytes() == 'name = "é"\n'.encode()


def test_a_run_by_another_command_is_added_and_a_repeated_one_is_not(copied):
    for command in ("b", "b", "a", "b"):
        store = Store.create(copied.folder, copied.plan, command=command)
    assert store.about["command"] == "b"
    assert [each["command"] for each in store.about["earlier"]] == ["robandit run x.toml", "a"]


def test_left_out_policies_large_seeds_and_whole_numbers_are_read_back(tmp_path):
    seed = 2**127 + 1
    plan = small_plan(policies=[rb.UCB1(scale=2), rb.KurtosisUCB()], seed=seed)
    store = Store.create(tmp_path, plan)
    again = Store.open(tmp_path)
    assert again.plan == plan
    assert again.plan.seed == seed
    assert [each.label for each in again.plan.left_out] == ["Kurtosis UCB"]
    # The parameter was given as 2 and is 2.0 when read: keys must not depend on which.
    assert [unit.key for unit in store.plan.units] == [unit.key for unit in again.plan.units]


def test_units_found_are_those_of_the_version_that_cut_them(played, monkeypatch):
    monkeypatch.setattr(plan_module, "PULLS", HORIZON)
    assert Store.open(played.folder).results().complete
    given = planned(
        [Played("p", played.plan.problems[0].problem, HORIZON)], [rb.UCB1(), rb.Uniform()], replications=20, seed=7
    )
    assert len(given.units) == 40
    assert len(Store.create(played.folder, given, command="robandit run x.toml").plan.units) == 10


def test_results_may_be_incomplete(copied):
    units = copied.plan.units
    for unit in units[1:6]:  # all but the first part of UCB1, and one of Uniform
        copied.ledger.part(unit).unlink()
    copied.ledger.fail(Failure(units[1], 3, "Traceback\nE: x"))
    copied.ledger.fail(Failure(units[0], 3, "old: the unit is there now"))
    results = copied.results()
    assert not results.complete
    assert results.measured[0].replications.tolist() == [0, 1, 2, 3]
    assert results.measured[1].replications.tolist() == list(range(4, 20))
    assert [(f.unit, f.tries, f.traceback) for f in results.failures] == [(units[1], 3, "Traceback\nE: x")]
    about = json.loads((copied.folder / "failures" / f"{units[1].key}.json").read_text())
    assert about["policy"] == "UCB1"
    assert about["unit"]["first"] == 4
    copied.ledger.keep(units[1], units[1].run())
    assert copied.results().failures == ()


def test_without_times_the_results_are_there(copied):
    shutil.rmtree(copied.folder / "times")
    shutil.rmtree(copied.folder / "locks")
    assert all(math.isnan(m.seconds) for m in copied.results().measured)
    copied.write_results()
    Store.create(copied.folder, copied.plan)
    assert (copied.folder / "times").is_dir()


# --- continuing -----------------------------------------------------------------------------------------------------


def test_more_replications_keep_what_is_done(copied):
    store = Store.create(copied.folder, small_plan(replications=26))
    assert store.plan.replications == 26
    assert Store.open(copied.folder).plan.replications == 26
    assert sum(store.ledger.done(unit) for unit in store.plan.units) == 10
    assert len(store.plan.units) == 14
    odd = Store.create(copied.folder, small_plan(replications=29))  # the unit of 2 that was planned becomes one of 4
    assert sum(odd.ledger.done(unit) for unit in odd.plan.units) == 10


def renamed(name, horizon=HORIZON):
    problem = small_plan().problems[0].problem
    return planned([Played(name, problem, horizon)], [rb.UCB1(), rb.Uniform()], replications=20, seed=7)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            lambda: small_plan(replications=19),
            r"has 20 replications, but the plan has only 19: use at least 20, or name another folder",
        ),
        (lambda: small_plan(seed=8), r"was made with another seed \(7 there, 8 here\); name another folder"),
        (
            lambda: small_plan(policies=[rb.UCB1(scale=3.0), rb.Uniform()], seed=8),
            r"was made with another seed \(7 .* 8 here\) and other policies \(UCB1 there, UCB1\(scale=3\.0\) here\); name",
        ),
        (
            lambda: small_plan(policies=[rb.UCB1()]),
            rf"made with other policies \({rb.Uniform().name} there, none here\)",
        ),
        (
            lambda: small_plan(policies=[rb.UCB1(), rb.Uniform(), rb.APE2(), rb.KurtosisUCB()]),
            r"other policies \(none there, APE\^2 and Kurtosis UCB here\)",
        ),
        (lambda: small_plan(policies=[rb.Uniform(), rb.UCB1()]), r"another plan \(it differs in UCB1 and .*\); name"),
        (lambda: renamed("q"), r"made with other problems \(p there, q here\)"),
        (lambda: renamed("p", horizon=HORIZON + 1), r"made with other horizons \(500 there, 501 here\)"),
        (
            lambda: small_plan(problem=rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.8)),
            r"made with another plan \(it differs in p\)",
        ),
        (lambda: small_plan(problem=rb.problems.gaussian(means=[0.0, 1.0])), r"another plan \(it differs in p\)"),
    ],
)
def test_another_plan_is_rejected_and_the_folder_is_as_it_was(played, plan, message):
    before = (played.folder / "run.json").read_bytes()
    with pytest.raises(InvalidInput, match=message):
        Store.create(played.folder, plan())
    assert (played.folder / "run.json").read_bytes() == before


def test_a_told_number_that_changed_is_named(tmp_path):
    Store.create(tmp_path, small_plan(policies=[rb.RobustMOSS()]))
    eps = [
        dataclasses.replace(c, policy=dataclasses.replace(c.policy, eps=0.3))
        for c in small_plan(policies=[rb.RobustMOSS()]).cells
    ]
    with pytest.raises(InvalidInput, match=r"another plan \(it differs in .*MOSS\)"):
        Store.create(tmp_path, Plan(tuple(eps), (), 7, 20))


# --- folders that are not ours, are newer, or are damaged -----------------------------------------------------------


def test_a_newer_folder_is_rejected(copied):
    edited(copied.folder, format=3)
    for attempt in (lambda: Store.open(copied.folder), lambda: Store.create(copied.folder, copied.plan)):
        with pytest.raises(NewerFile, match=r"run\.json has format 3.*up to 2.*upgrade"):
            attempt()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "x"}', '{"format": 1}', '{"format": null}'])
def test_a_damaged_run_json_is_named(copied, text):
    (copied.folder / "run.json").write_text(text)
    for attempt in (lambda: Store.open(copied.folder), lambda: Store.create(copied.folder, copied.plan)):
        with pytest.raises(CorruptFile, match=r"run\.json"):
            attempt()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["cells"][0].update(label="Another name"),
        lambda data: data["cells"].reverse(),
        lambda data: data["problems"][0].update(name="q"),
        lambda data: data.update(replications=16),
        lambda data: data["runs"][0].update(command="rm -r /"),
        lambda data: data.update(notes=["All is well."]),
        lambda data: data.update(checksum="0" * 64),
        lambda data: data.pop("checksum"),
        lambda data: data.update(checksum=None),
        lambda data: data.update(format=1),
        lambda data: [data.update(format=1), data.pop("checksum")],
        lambda data: [data.update(format=1, references=[None]), data.pop("checksum"), data.pop("modules")],
    ],
)
def test_an_altered_run_json_is_named(copied, change):
    path = copied.folder / "run.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    for attempt in (lambda: Store.open(copied.folder), lambda: Store.create(copied.folder, copied.plan)):
        with pytest.raises(
            CorruptFile, match=r"run\.json was changed or damaged: its checksum does not match; restore it"
        ):
            attempt()


def test_spaces_and_the_order_of_keys_do_not_matter(copied):
    path = copied.folder / "run.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(data.items()))))
    assert Store.open(copied.folder) == copied


def test_modules_of_another_type_are_named(copied):
    for modules in (3, [3], [{"name": "mine"}], [{"name": 1, "source": "", "sha256": ""}]):
        edited(copied.folder, modules=modules)
        for attempt in (lambda: Store.open(copied.folder), lambda: Store.create(copied.folder, copied.plan)):
            with pytest.raises(CorruptFile, match=r"run\.json is damaged: modules"):
                attempt()


def test_other_things_in_a_folder_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with raises(FileError, code="other-folder"):
        Store.create(tmp_path, small_plan())
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with raises(FileError, code="other-folder"):
        Store.create(tmp_path / "thesis.tex", small_plan())
    with pytest.raises(FileError, match=r"not a run folder: it has no run\.json"):
        Store.open(tmp_path)
    with pytest.raises(FileError, match="not a run folder"):
        Store.open(tmp_path / "nowhere")


def test_what_a_killed_beginning_leaves_is_no_obstacle(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "run.lock").touch()
    left = tmp_path / ".run.json.0123abcd-01234567.part"
    left.touch()
    os.utime(left, (0.0, 0.0))
    Store.create(tmp_path, small_plan())
    assert sorted(os.listdir(tmp_path)) == ["failures", "locks", "parts", "run.json", "times"]
    assert os.listdir(tmp_path / "locks") == []


def test_files_of_an_editor_are_left_alone(copied):
    names = [".run.json.swp", ".spec.toml.swp", "results/.regret.parquet.swp"]
    copied.write_results()
    for name in names:
        (copied.folder / name).touch()
    Store.create(copied.folder, copied.plan, spec_text="").write_results()
    assert all((copied.folder / name).exists() for name in names)


def test_half_written_files_and_stale_locks_are_swept(copied):
    mine = copied.plan.units[0]
    stale = copied.folder / "locks" / "stale.lock"
    left = [
        copied.folder / f"parts/.{mine.key}.parquet.abcdef_1",
        copied.folder / f"times/.{mine.key}.json.0123abcd-89abcdef.part",
    ]
    foreign = copied.folder / "parts/.DS_Store"
    for path in (*left, stale, foreign):
        path.touch()
    with copied.alone():
        assert [path.exists() for path in (*left, stale, foreign)] == [False, False, False, True]
        with pytest.raises(FileError, match="another run is at work"), copied.alone():
            pass
    assert copied.results().complete


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b"", lambda b: b[:99] + bytes([b[99] ^ 1]) + b[100:]])
def test_a_damaged_part_is_not_done_and_named(copied, damage):
    unit = copied.plan.units[3]
    part = copied.ledger.part(unit)
    part.write_bytes(damage(part.read_bytes()))
    assert not copied.ledger.done(unit)
    with pytest.raises(CorruptFile, match=rf"{part.name} .*checksum.*run again"):
        copied.results()


def test_a_part_under_another_name_is_rejected(copied):
    first, second = copied.plan.units[:2]
    shutil.copy(copied.ledger.part(first), copied.ledger.part(second))
    with pytest.raises(CorruptFile, match=rf"{second.key}.* holds the unit {first.key}.*delete it"):
        copied.results()


def test_damaged_parts_are_all_kept(copied):
    unit = copied.plan.units[0]
    for text in ("one", "two"):
        copied.ledger.part(unit).write_text(text)
        copied.ledger.set_aside(unit)
    assert sorted(contents(copied.folder, "damaged").values()) == [b"one", b"two"]
    assert copied.ledger.set_aside(unit) is None


def test_a_damaged_failure_is_named(copied):
    unit = copied.plan.units[0]
    copied.ledger.part(unit).unlink()
    (copied.folder / "failures" / f"{unit.key}.json").write_text("{")
    with pytest.raises(CorruptFile, match=rf"failures.{unit.key}\.json is damaged.*delete it"):
        copied.results()


# --- tables ---------------------------------------------------------------------------------------------------------


def test_tables_hold_every_number_in_order(copied):
    regret_path, pulls_path = copied.write_results()
    assert (regret_path, pulls_path) == (
        copied.folder / "results/regret.parquet",
        copied.folder / "results/pulls.parquet",
    )
    regret, pulls = pl.read_parquet(regret_path), pl.read_parquet(pulls_path)
    assert dict(regret.schema) == {
        "problem": pl.String,
        "horizon": pl.Int64,
        "policy": pl.String,
        "replication": pl.Int64,
        "t": pl.Int64,
        "regret": pl.Float64,
    }
    assert list(pulls.schema) == ["problem", "horizon", "policy", "replication", "arm", "pulls"]
    for measured in copied.results().measured:
        of = pl.col("policy") == measured.cell.label
        here = regret.filter(of)
        assert (here["regret"].to_numpy() == measured.regret.reshape(-1)).all()
        assert (here["t"].to_numpy().reshape(20, -1) == measured.checkpoints).all()
        assert (here["replication"].to_numpy().reshape(20, -1) == np.arange(20)[:, None]).all()
        assert (pulls.filter(of)["pulls"].to_numpy() == measured.pulls.reshape(-1)).all()
        assert pulls.filter(of)["arm"].to_list() == [0, 1] * 20
    assert regret["problem"].unique().to_list() == ["p"]
    assert regret["horizon"].unique().to_list() == [HORIZON]
    for path, table in ((regret_path, "regret"), (pulls_path, "pulls")):
        assert json.loads(pl.read_parquet_metadata(path)["robandit"]) == {"table": table, "version": 1}
        read_sealed(path)
    assert sorted(os.listdir(copied.folder / "results")) == ["pulls.parquet", "regret.parquet"]


def test_tables_of_nothing_have_their_columns(tmp_path):
    Store.create(tmp_path / "run", small_plan()).write_results()
    assert list(pl.read_parquet(tmp_path / "run" / "results" / "regret.parquet").schema)[-2:] == ["t", "regret"]
    assert len(pl.read_parquet(tmp_path / "run" / "results" / "pulls.parquet")) == 0


def test_files_of_the_user_in_a_run_folder_are_kept(tmp_path):
    """Only temporary files of killed processes are removed: by their whole name, not by a dot at its beginning."""
    plan = small_plan()
    run(plan, tmp_path, threads=1)
    key = plan.units[0].key
    kept = [".spec.toml.swp", ".run.json.bak", "parts/.my.note.txt", "failures/.a.b.c", "results/.regret.parquet.bak"]
    kept += [f"parts/.{key}.parquet.backup", f"times/.{key}.json.HOST-01234567.part"]
    left = [f"parts/.{key}.parquet.0a1b2c3d", f"times/.{key}.json.abcdef01-01234567.part"]
    for name in (*kept, *left):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "parts" / f".{key}.parquet.zzzzzzzz").mkdir()
    outcome = run(plan, tmp_path, threads=1)
    outcome.store.write_results()
    assert all((tmp_path / name).exists() for name in kept)
    assert not any((tmp_path / name).exists() for name in left)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_and_devices_in_a_run_folder_are_not_read(tmp_path):
    plan = small_plan()
    store = run(plan, tmp_path, threads=1, spec_text="name = 'x'").store
    time = next((tmp_path / "times").iterdir())
    time.unlink()
    os.mkfifo(time)
    assert len(store.results().measured) == len(plan.cells)
    os.mkfifo(tmp_path / "failures" / f"{plan.units[0].key}.json")
    store.ledger.part(plan.units[0]).unlink()
    with pytest.raises(FileError, match="is a device or a pipe"):
        store.failures()
    (tmp_path / "spec.toml").unlink()
    (tmp_path / "spec.toml").symlink_to("/dev/zero")
    with pytest.raises(CorruptFile, match="is a device or a pipe"):
        _ = store.about
