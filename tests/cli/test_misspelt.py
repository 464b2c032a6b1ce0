"""Options and values that are misspelt, or meant for another place."""

import socket
import sys

import pytest

from robandit import cli
from robandit.cli.options import _integer
from robandit.cli.serve import serve
from robandit.errors import InvalidInput


@pytest.fixture
def refused(monkeypatch, capsys):
    """Return a function that runs a command which ends with an error, and returns its code and its first line."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["robandit", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr().err.splitlines()[0].removeprefix("robandit: ")

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare --policys UCB1", "Unknown option: --policys (did you mean --policy?)"),
        ("compare --polices=UCB1", "Unknown option: --polices (did you mean --policy?)"),
        ("compare -policy UCB1", "Unknown option: -policy (did you mean --policy?)"),
        ("compare --reps 20", "Unknown option: --reps (did you mean --replications?)"),
        ("compare --random-state 1", "Unknown option: --random-state (did you mean --seed?)"),
        ("serve --prt 80", "Unknown option: --prt (did you mean --port?)"),
        ("replay x.csv --minimise", "Unknown option: --minimise (did you mean --minimize?)"),
        (
            "replay --rewards x",
            "Unknown option: --rewards (did you mean --reward?). For a file of this name, write ./--rewards",
        ),
        (
            "compare --tail 1.2",
            "Unknown option: --tail. tail is a parameter of negated_lomax, negated_pareto and pareto: "
            "write --problem 'negated_lomax(tail=...)'",
        ),
        (
            "compare --minimise",
            "Unknown option: --minimise. minimize is a parameter of bernoulli, gaussian, pareto and 2 more: "
            "write --problem 'bernoulli(minimize=...)'",
        ),
        (
            "compare --epsilon .2 --quick",
            "Unknown option: --epsilon. epsilon is a parameter of EpsilonGreedy and LinEpsilonGreedy: "
            "write --policy 'EpsilonGreedy(epsilon=...)'",
        ),
        ("replay x.csv --maximize", "Unknown option: --maximize"),  # minimize is the opposite
        ("diagnose x.csv --tail 1.2", "Unknown option: --tail"),
        (f"serve --{'x' * 5000}", f"Unknown option: --{'x' * 78}"),
    ],
)
def test_an_option_that_does_not_exist(words, message, refused):
    assert refused(*words.split()) == (2, message)


INTEGERS = [
    *("compare --horizon", "compare --replications", "compare --seed", "compare --threads", "replay x.csv --horizon"),
    *("run x.toml --threads", "run x.toml --workers", "serve --port", "verify --seed"),
]


@pytest.mark.parametrize("command", INTEGERS)
def test_every_integer_may_have_an_exponent(command):
    app = cli.application()
    _, bound, _ = app.parse_args(f"{command} 2e1", exit_on_error=False, print_error=False)
    values = [
        value for each in bound.arguments.values() for value in (each if isinstance(each, (list, tuple)) else [each])
    ]
    assert [value for value in values if value == 20 and type(value) is int] == [20]


@pytest.mark.parametrize(
    "value", ["1.5", "1.0", "1.5e0", "1e-3", "1e400", "1e999999999", "10,000", "1e", "e4", "1.2.3e4", "inf", "x"]
)
@pytest.mark.parametrize("command", ["compare --horizon", "verify --seed"])
def test_what_is_not_an_integer_is_refused_by_name(command, value, refused):
    option = command.split()[-1]
    message = f"Invalid value for {option}: {value!r} is not an integer, such as 10000 or 1e4"
    assert refused(*command.split(), value) == (2, message)


def test_integers_are_exact_and_a_long_one_is_shortened(refused):
    from cyclopts import Token

    parsed = [_integer(int, [Token(value=text)]) for text in ("10", "-3", "1_000", "1e3", "1.5E+1", "25e0")]
    assert parsed == [10, -3, 1000, 1000, 15, 25]
    code, message = refused("compare", "--horizon", "9" * 5000)
    assert code == 2
    assert len(message) < 200


def test_a_wrong_store_is_named_before_a_port_that_is_in_use():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for store in ("mysql://ada:secret@db.example.org/robandit", "robandit.db"):
            with pytest.raises(InvalidInput, match=r"^store = .* must be sqlite:PATH") as caught:
                serve(port=port, store=store)
            assert "secret" not in str(caught.value)
