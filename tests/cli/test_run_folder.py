"""A folder that is taken: the command line names its own way out."""

from pathlib import Path

import pytest

from helpers.typed import typed
from robandit.cli.run_folder import another_with_out
from robandit.errors import FileError, InvalidInput
from robandit.experiments.compare_plan import compared
from robandit.experiments.spec import read_spec
from robandit.experiments.store import Store

SPEC = """\
seed = 3
replications = 2
horizons = [100]
problems = ["gaussian(means=[1.0, 0.0])"]
policies = ["UCB1"]
"""


def test_another_experiment_in_the_folder_is_rejected_with_the_option_that_helps(tmp_path):
    spec = tmp_path / "two.toml"
    spec.write_text(SPEC)
    Store.create(tmp_path / "two", read_spec(spec).plan())
    spec.write_text(SPEC.replace('"UCB1"', '"UCB1(scale=2.0)"'))
    for words in (("run", "two.toml"), ("plan", "two.toml")):
        message = typed(*words, cwd=tmp_path, code=1)[1]
        assert message.startswith("robandit: two was made with other policies (UCB1 there, UCB1(scale=2.0) here); ")
        assert message.endswith("; name another folder with --out FOLDER, or remove two\n")
    spec.write_text(SPEC.replace("replications = 2", "replications = 1"))
    message = typed("run", "two.toml", cwd=tmp_path, code=1)[1]
    assert message.endswith(": use at least 2, or name another folder with --out FOLDER, or remove two\n")


def test_what_is_no_run_folder_is_not_to_be_removed(tmp_path):
    (tmp_path / "two.toml").write_text(SPEC)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "thesis.tex").touch()
    message = typed("run", "two.toml", cwd=tmp_path, code=1)[1]
    assert message.endswith(
        "two is not a run folder and not empty (it has thesis.tex): name another folder with --out FOLDER\n"
    )
    (tmp_path / "file").touch()
    message = typed("run", "two.toml", "--out", "file", cwd=tmp_path, code=1)[1]
    assert message == "robandit: file is a file: name another folder with --out FOLDER\n"


def test_other_errors_are_as_they_were():
    for error in (InvalidInput("horizon = 0"), FileError("broken")):
        with pytest.raises(type(error)) as caught, another_with_out(Path("here")):
            raise error
        assert caught.value is error


def test_python_names_no_option(tmp_path):
    def plan(seed):
        return compared([], None, ["UCB1"], horizon=10, replications=1, seed=seed, quick=False)

    Store.create(tmp_path / "run", plan(1))
    with pytest.raises(InvalidInput, match=r"made with another seed \(1 there, 2 here\); name another folder$"):
        Store.create(tmp_path / "run", plan(2))
