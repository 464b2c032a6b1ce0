"""`robandit archive` and `robandit migrate-store`, and what a server answers about archived events."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from helpers.invalid import raises
from helpers.serving import Clock, Local
from helpers.stores import opened
from robandit import cli
from robandit.decisions import archiving
from robandit.errors import InvalidInput, NotFound, StoreError
from robandit.storage import open_store

GOLDEN = Path(__file__).parents[1] / "golden" / "service.schema2.db"
DAY = 86_400.0


@pytest.fixture
def typed(capsys):
    """Run a command in this process, and return what it prints."""

    def run(*words):
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            cli.application()([str(word) for word in words], exit_on_error=False, print_error=False)
        return capsys.readouterr().out

    return run


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path):
    return (
        f"sqlite:{tmp_path / 'robandit.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )


@pytest.fixture
def clock(monkeypatch):
    """The time of the archives; servers that share a database take that of the database."""
    clock = Clock()
    monkeypatch.setattr(archiving, "now", lambda store: clock.now)
    return clock


def call(local, *words, status=200):
    answer = local.call(*words)
    assert answer.status == status, answer.body
    return answer


def experiment(location, clock):
    """Make an experiment with 30 decisions. Return the ids, and the time in the middle."""
    with Local(Path(), store=open_store(location), clock=clock) as local:
        call(local, "PUT", "/v1/experiments/e", {"arms": ["a", "b"]}, status=201)
        ids = [f"decision {k}" for k in range(30)]
        for k, id in enumerate(ids):
            clock.now += 3600.0
            call(local, "POST", "/v1/experiments/e/decisions", {"id": id})
            if k % 3:
                call(local, "POST", "/v1/experiments/e/rewards", {"id": id, "value": 1.0 + k})
    return ids


def test_archiving_and_serving(tmp_path, typed, clock):
    location, folder = f"sqlite:{tmp_path / 'robandit.db'}", tmp_path / "old"
    ids = experiment(location, clock)
    printed = typed("archive", folder, "--days", 0.5, "--store", location)
    last = int(re.fullmatch(
        r"e: events 1 to (\d+) in .*old/e\.1\.1-\1\.parquet\n"
        r"archived: \1 events, compared with the log and removed from it\n", printed,
    )[1])  # fmt: skip
    assert typed("archive", folder, "--days", 0.5, "--store", location).startswith("archived: 0 events")
    assert pl.read_parquet(folder / f"e.1.1-{last}.parquet")["seq"].to_list() == list(range(1, last + 1))
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        summary = call(local, "GET", "/v1/experiments/e").json
        assert summary["counts"]["decisions"] == 30
        rows = [json.loads(line) for line in call(local, "GET", "/v1/experiments/e/log").body.splitlines()]
        assert [row["seq"] for row in rows] == list(range(last + 1, 52))
        limited = call(local, "GET", f"/v1/experiments/e/log?after={last - 7}&limit=3").body.splitlines()
        assert [json.loads(line)["seq"] for line in limited] == [last + 1, last + 2, last + 3]
        gone = call(local, "GET", f"/v1/experiments/e/decisions/{ids[3]}".replace(" ", "%20"), status=404).json
        assert f"its events up to {last} are archived" in gone["detail"]
        kept = call(local, "GET", f"/v1/experiments/e/decisions/{ids[-1]}".replace(" ", "%20")).json
        assert [arm["arm"] for arm in kept["arms"]] == ["a", "b"]
        call(local, "POST", "/v1/experiments/e/rewards", {"id": ids[0], "value": 5.0})
        call(local, "POST", "/v1/experiments/e/decisions", {"id": ids[3]}, status=409)
        for window in ("all", "30d", "1h"):
            call(local, "GET", f"/experiments/e?window={window}")


def test_a_log_that_is_archived_while_it_is_read_ends_with_an_error(tmp_path, clock, monkeypatch):
    from robandit.service import logs

    monkeypatch.setattr(logs, "PAGE", 10)
    location = f"sqlite:{tmp_path / 'robandit.db'}"
    experiment(location, clock)
    with opened(location) as store, contextlib.closing(store.reader()) as reader:
        assert logs._page(reader, 1, 0, 51, False, begun=False)[0] == 10
        list(archiving.archive(store, tmp_path / "old", clock.now - DAY))
        last = reader.archived(1)
        seq, rows = logs._page(reader, 1, 0, last + 3, False, begun=False)
        assert (seq, [row.seq for row in rows]) == (last + 3, [last + 1, last + 2, last + 3])
        with pytest.raises(StoreError, match="events after 5 were archived while the log was read: read it again"):
            logs._page(reader, 1, 5, 51, False, begun=True)
        list(archiving.archive(store, tmp_path / "old", clock.now + DAY))
        with pytest.raises(StoreError, match=f"events after {last} were archived"):
            logs._page(reader, 1, last, 51, False, begun=True)


def test_archiving_with_wrong_options(tmp_path, typed, location):
    open_store(location).close()
    for words in ([], ["--days", "3", "--restore"]):
        with pytest.raises(InvalidInput, match="needs one of --days and --restore, for example --days 90"):
            typed("archive", tmp_path / "old", *words, "--store", location)
    with raises(InvalidInput, parameter="--days"):
        typed("archive", tmp_path / "old", "--days=-1", "--store", location)
    with pytest.raises(NotFound, match="there is no experiment 'x'"):
        typed("archive", tmp_path / "old", "--days", "1", "--experiment", "x", "--store", location)
    assert typed("archive", tmp_path / "old", "--restore", "--store", location) == ""


def test_archiving_while_a_server_runs(tmp_path, typed, location, clock):
    with opened(location):
        words = ("archive", tmp_path / "old", "--days", "1", "--store", location)
        if location.startswith("sqlite:"):
            with raises(StoreError, code="store-in-use"):
                typed(*words)
        else:
            assert typed(*words).startswith("archived: 0 events")


def test_restoring(tmp_path, typed, clock):
    location, folder = f"sqlite:{tmp_path / 'robandit.db'}", tmp_path / "old"
    experiment(location, clock)
    typed("archive", folder, "--days", 0.5, "--store", location)
    assert re.fullmatch(
        r"e: state after event \d+ restored\n", typed("archive", folder, "--restore", "--store", location)
    )


def test_migrating(tmp_path, typed, location):
    source = f"sqlite:{shutil.copy(GOLDEN, tmp_path / 'golden.db')}"
    printed = typed("migrate-store", source, location)
    assert re.fullmatch(
        r"migrated and compared: 7 experiments, \d+ events, 1 key, 7 entries of the audit log\n"
        r"next: start all servers with the new store; keep the old one until they have run for a while\n"
        rf"keep {re.escape(source)} as a backup, and start no server on it\n",
        printed,
    )
    with Local(Path(), store=open_store(location)) as local:
        assert len(call(local, "GET", "/v1/experiments").json["experiments"]) == 7


def test_migrating_to_where_it_is(tmp_path, typed):
    shutil.copy(GOLDEN, tmp_path / "golden.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "golden.db")
    with pytest.raises(InvalidInput, match="is the source: name another target"):
        typed("migrate-store", f"sqlite:{tmp_path / 'golden.db'}", f"sqlite:{tmp_path / 'link.db'}")
    with pytest.raises(StoreError, match=r"absent.db does not exist"):
        typed("migrate-store", f"sqlite:{tmp_path / 'absent.db'}", f"sqlite:{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("command", ["migrate-store", "archive"])
def test_interrupted(tmp_path, capsys, monkeypatch, command):
    """What is said is true: of a copy something was written."""
    from robandit.decisions import moving

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(moving, "_compared", interrupt)
    monkeypatch.setattr(archiving, "_check", interrupt)
    monkeypatch.setattr(archiving, "now", lambda store: 9e9)
    source, target = f"sqlite:{shutil.copy(GOLDEN, tmp_path / 'golden.db')}", f"sqlite:{tmp_path / 'target.db'}"
    words = (
        [source, target] if command == "migrate-store" else [str(tmp_path / "old"), "--days", "1", "--store", source]
    )
    with pytest.raises(SystemExit) as ended:
        cli.application()([command, *words], exit_on_error=False, print_error=False)
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert ("is incomplete, and no server opens it" if command == "migrate-store" else "repeat the command") in said


def test_interrupted_before_the_target_is_made(tmp_path, capsys, monkeypatch):
    from robandit.decisions import moving

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(moving, "move", interrupt)
    source, target = f"sqlite:{shutil.copy(GOLDEN, tmp_path / 'golden.db')}", tmp_path / "target.db"
    with pytest.raises(SystemExit) as ended:
        cli.application()(["migrate-store", source, f"sqlite:{target}"], exit_on_error=False, print_error=False)
    assert ended.value.code == 130
    assert capsys.readouterr().err == f"robandit: interrupted: nothing was copied; {source} is unchanged\n"


# --- the page -----------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "move-and-archive.md").read_text()


def test_the_pages_commands_and_their_output_are_real(tmp_path, typed, clock, monkeypatch, capsys):
    """With other numbers and places."""
    monkeypatch.chdir(tmp_path)
    experiment("sqlite:robandit.db", clock)
    clock.now += 89.5 * DAY
    url = "postgresql://robandit@db.example.org/robandit"
    blocks = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for command, output in blocks:
        words = command.replace(url, "sqlite:robandit.db" if "archive" in command else "sqlite:copy.db").split()[1:]
        expected = output.replace("postgresql://db.example.org/robandit", "sqlite:copy.db")
        assert shape(typed(*words)) == shape(expected.replace("provider", "e"))
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(snippet.replace("provider", "e"), {})
    assert re.search(r"a +┆ \d+ +│\n│ b +┆ \d+", capsys.readouterr().out)


def shape(text):
    """Return a text without numbers and plurals."""
    counted = re.sub(r"\d+(,\d{3})*", "0", text)
    return re.sub(r"\b(experiments?|events?|keys?|entr(y|ies))\b", "things", counted)
