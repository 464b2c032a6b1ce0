"""An option without its value: the message names an example, for every option of every command."""

import contextlib
import shlex
from collections.abc import Iterator
from typing import Any

import cyclopts
import pytest

from robandit import cli
from robandit.cli.missing import EXAMPLES, shown_name


def commands(app: Any, chain: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in app:
        if not name.startswith("-"):
            inner = list(commands(app[name], (*chain, name)))
            yield from inner
            if app[name].default_command is not None:
                yield (*chain, name), app[name]


APP = cli.application()
ARGUMENTS = [
    (chain, argument)
    for chain, command in commands(APP)
    for argument in command.assemble_argument_collection()
    if argument.name != "*" and not argument.is_flag()
]
OPTIONS = [(chain, argument) for chain, argument in ARGUMENTS if not argument.field_info.is_positional]
WORDS = {
    "run": ["x.toml"],
    "plan": ["x.toml"],
    "show": ["x"],
    "export": ["x"],
}  # what a command needs before its options


def message(*words: str) -> str:
    with pytest.raises(cyclopts.CycloptsError) as raised:
        APP(list(words), exit_on_error=False, print_error=False)
    return cli._usage_error(raised.value).splitlines()[0]


@pytest.mark.parametrize(
    ("chain", "argument"), OPTIONS, ids=[" ".join([*chain, argument.name]) for chain, argument in OPTIONS]
)
def test_an_option_without_a_value_names_an_example_that_can_be_read(chain, argument):
    text = message(*chain, *WORDS.get(chain[-1], ()), argument.name)
    needs, found, example = text.partition(f", for example {argument.name} ")
    assert needs.startswith((f"{argument.name} needs a", f"{argument.name} needs one of ")), text
    assert found, text
    assert "a path" not in needs, "say whether it is a file or a folder"
    # The example itself is accepted as a value.
    typed = [*chain, *WORDS.get(chain[-1], ()), argument.name, *shlex.split(example)]
    with contextlib.suppress(cyclopts.MissingArgumentError):  # of another option
        APP.parse_args(typed, exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("compare", "--out"), "--out needs a file, for example --out report.html"),
        (("replay", "--out"), "--out needs a folder, for example --out results"),
        (("results", "export", "x", "--out"), "--out needs a file, for example --out summary.csv"),
        (("diagnose", "x.csv", "--where"), '--where needs a condition, for example --where "ok = true"'),
        (("run", "x.toml", "--engine"), "--engine needs one of threads, dask, for example --engine threads"),
        (("replay", "--mode"), "--mode needs one of bootstrap, in-order, rejection, for example --mode bootstrap"),
        (("run",), "SPEC needs a file, for example robandit run experiment.toml"),
        (("results", "show"), "FOLDER needs a run folder, for example robandit results show results"),
        (("completion",), "SHELL needs one of bash, zsh, fish, for example robandit completion bash"),
    ],
    ids=" ".join,
)
def test_the_example_fits_the_command(words, text):
    assert message(*words) == text


def test_every_example_belongs_to_an_option():
    known = {shown_name(argument) for _, argument in ARGUMENTS}
    known |= {f"{' '.join(chain)} {shown_name(argument)}" for chain, argument in ARGUMENTS}
    assert set(EXAMPLES) <= known
