"""`robandit diagnose` and `robandit replay`, as a person types them."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from helpers.typed import typed

pytestmark = pytest.mark.xdist_group("experiments")

FEW = ("--policy", "UCB1", "--policy", "EpsilonGreedy", "--replications", "4", "--seed", "5")


def costs(rows=400):
    """A counterfactual table in long form: two servers, heavy-tailed latencies, one a quarter slower."""
    draws = np.random.default_rng(8).pareto(2.5, (rows, 2)) + 1.0
    return pl.DataFrame(
        {
            "server": ["fast", "slow"] * rows,
            "ms": np.column_stack([draws[:, 0], 4.0 * draws[:, 1]]).reshape(-1),
            "time": np.repeat(np.arange(rows), 2),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("recorded")
    costs().write_csv(where / "costs.csv")
    costs().write_parquet(where / "costs.parquet")
    costs().write_ndjson(where / "costs.jsonl")
    return where


COLUMNS = ("--arm", "server", "--reward", "ms", "--negate")


def test_diagnose_says_the_same_of_every_format_and_of_the_standard_input(folder):
    printed, _ = typed("diagnose", "costs.csv", *COLUMNS, cwd=folder)
    for word in ("fast", "slow", "400", "AdaKL-UCB", "report: robandit-diagnosis.html"):
        assert word in printed
    page = (folder / "robandit-diagnosis.html").read_text()
    assert "robandit diagnose costs.csv --arm server --reward ms --minimize" in page
    for other in ("costs.parquet", "costs.jsonl"):
        assert typed("diagnose", other, *COLUMNS, cwd=folder)[0].replace(other, "costs.csv") == printed
    with (folder / "costs.csv").open("rb") as given:
        spoken = subprocess.run(
            [sys.executable, "-m", "robandit", "diagnose", "-", *COLUMNS],
            cwd=folder,
            stdin=given,
            capture_output=True,
            check=True,
        )
    assert " ".join(spoken.stdout.decode().split()).replace("the standard input", "costs.csv") == printed


def test_costs_are_minimised_in_their_own_sign(folder):
    columns = [*COLUMNS[:-1], "--minimize"]
    printed, _ = typed("diagnose", "costs.csv", *columns, "--out", "minimised.html", cwd=folder)
    assert "800 costs of 2 arms, minimised" in printed
    assert "has the lowest mean" in printed
    assert "reward" not in printed
    assert "--reward ms --minimize" in (folder / "minimised.html").read_text()
    replayed, _ = typed("replay", "costs.csv", *columns, *FEW, "--out", "minimised", cwd=folder)
    typed("replay", "costs.csv", *COLUMNS, *FEW, "--out", "negated", cwd=folder)  # --negate is another name
    assert "800 costs of 2 arms, the column 'ms', minimised" in replayed
    tables = [pl.read_parquet(folder / name / "results" / "regret.parquet") for name in ("minimised", "negated")]
    assert tables[0].equals(tables[1])


def test_bad_rows_are_rejected_by_number_or_counted(folder):
    lines = (folder / "costs.csv").read_text().splitlines()
    lines[3] = "fast,oops,1"
    lines[10] = "slow,,5"
    (folder / "bad.csv").write_text("\n".join(lines))
    _, complaint = typed("diagnose", "bad.csv", *COLUMNS, cwd=folder, code=1)
    for word in ("line 4", "oops", "line 11", "--skip-bad"):
        assert word in complaint
    printed, _ = typed("diagnose", "bad.csv", *COLUMNS, "--skip-bad", cwd=folder)
    assert "2 bad rows" in printed


@pytest.mark.parametrize(
    ("command", "content", "words"),
    [
        ("diagnose", b"", ("is empty",)),
        ("replay", b"arm,reward\n", ("no rows",)),
        ("replay", b"name,reward\na,1\nb,2\n", ("'arm'", "name", "--arm")),
        ("diagnose", b"arm,reward\na,1e308\nb,1\n", ("1e+308", "line 2")),
        ("diagnose", b"\x00\xff\xfe\x01", ("other.csv",)),
    ],
)
def test_tables_that_cannot_be_read_are_rejected_with_a_reason(folder, command, content, words):
    (folder / "other.csv").write_bytes(content)
    _, complaint = typed(command, "other.csv", cwd=folder, code=1)
    for word in words:
        assert word in complaint


def test_a_replay_needs_two_arms_and_a_file(folder):
    (folder / "one.csv").write_text("arm,reward\na,1\na,2\n")
    assert "one arm only, 'a'" in typed("replay", "one.csv", cwd=folder, code=1)[1]
    assert "--example flights" in typed("replay", cwd=folder, code=1)[1]
    assert "Unknown option: --frobnicate" in typed("replay", "--frobnicate", cwd=folder, code=2)[1]


def test_a_table_is_replayed_by_bootstrap_and_in_order_and_goes_on(folder):
    printed, _ = typed("replay", "costs.csv", *COLUMNS, *FEW, cwd=folder)
    for word in (
        "costs, bootstrap",
        "costs, in-order",
        "since every arm has a cost at every time",
        "800 costs of 2 arms",
    ):
        assert word in printed
    assert "units: 4 played" in printed
    regret = pl.read_parquet(folder / "costs-replay" / "results" / "regret.parquet")
    assert dict(regret.group_by("problem").agg(pl.col("t").max()).iter_rows()) == {
        "costs, bootstrap": 800,
        "costs, in-order": 400,
    }
    assert "since every arm has a cost at every time" in (folder / "costs-replay" / "report.html").read_text()
    again, _ = typed("replay", "costs.csv", *COLUMNS, *FEW, cwd=folder)
    assert "units: 0 played" in again
    assert "4 done before" in again


def test_other_data_in_the_same_folder_are_rejected(folder):
    costs(300).write_csv(folder / "fewer.csv")
    words = ("replay", "fewer.csv", *COLUMNS, *FEW, "--mode", "bootstrap", "--out", "shared-folder")
    typed(*words, cwd=folder)
    costs(301).write_csv(folder / "fewer.csv")
    assert "was made with other horizons" in typed(*words, cwd=folder, code=1)[1]


def test_a_log_is_replayed_by_rejection_with_its_propensities(folder):
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 2, 600)
    log = pl.DataFrame({"arm": arms, "reward": rng.normal(arms, 1.0), "propensity": np.full(600, 0.5)})
    log.write_ndjson(folder / "log.jsonl")
    printed, _ = typed("replay", "log.jsonl", *FEW, cwd=folder)
    assert "log, rejection" in printed
    assert "Rows are thinned by their propensities" in printed
    assert "there is no time column" in printed
    about = json.loads((folder / "log-replay" / "run.json").read_text())
    assert any("rejection" in note.lower() for note in about["notes"])
    assert "LONG RUNS" not in printed
    log.sort("arm").write_csv(folder / "sorted.csv")
    sorted_, _ = typed("replay", "sorted.csv", *FEW, "--mode", "rejection", cwd=folder)
    assert "BUT THE LOG HAS LONG RUNS OF ONE ARM" in sorted_


def test_the_example_says_that_the_difference_is_not_significant(folder):
    printed, _ = typed("replay", "--example", "flights", "--quick", *FEW, "--horizon", "500", cwd=folder)
    assert "flights, bootstrap" in printed
    assert "not significant" in printed
    assert "327,317 costs of 15 arms" in printed


def test_the_log_of_a_decision_service(folder):
    """Costs of a policy without propensities, as NDJSON."""
    lines = [
        {"seq": i, "time": 1.7e9 + i, "kind": "rewarded", "id": str(i), "arm": arm, "reward": ms, "propensity": None}
        for i, (arm, ms, _) in enumerate(costs().rows())
    ]
    place = folder / "service"
    place.mkdir()
    (place / "provider.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    diagnosed, _ = typed("diagnose", "provider.jsonl", "--minimize", cwd=place)
    replayed, _ = typed("replay", "provider.jsonl", "--minimize", *FEW, "--horizon", "200", cwd=place)
    _, complaint = typed("replay", "http://127.0.0.1:8000/v1/experiments/provider", cwd=place, code=1)
    assert "800 costs of 2 arms, minimised" in diagnosed
    assert "has the lowest mean" in diagnosed
    assert "provider, bootstrap" in replayed
    assert "800 costs of 2 arms, the column 'reward', minimised" in replayed
    assert complaint.count("\n") == 1
    assert "curl -L URL | robandit diagnose -" in complaint
    assert (place / "provider-replay" / "report.html").exists()
