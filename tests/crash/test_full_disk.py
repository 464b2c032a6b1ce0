"""A disk that fills up under load: the server ends with a named error, and loses nothing that it acknowledged (guarantee 3)."""

import resource
import shlex
import signal
import subprocess
import sys
from functools import partial

import pytest

from crash.harness import Auditor, Client, History, Site, check_all, create_experiments, request, wait_until_ready
from crash.model import copied
from helpers.serving import Server

pytestmark = pytest.mark.xdist_group("crash")
CLIENTS = 8


class Load:
    """Clients that use a server until it ends."""

    def __init__(self, path, port):
        self.site, self.history = Site(), History()
        self.auditor = Auditor(partial(copied, path, path.parent / "copy"), self.history)
        self.clients = [Client(self.site, self.history, seed) for seed in range(CLIENTS)]
        create_experiments(port)
        self.site.open(port)

    def run_until_end(self, process):
        """Return the exit code of the server, and what it printed."""
        for client in self.clients:
            client.start()
        out, err = process.communicate(timeout=60)
        self.site.shut(for_good=True)
        for client in self.clients:
            client.join(40)
            if client.failure is not None:
                raise client.failure
        return process.returncode, out, err

    def check_answers(self):
        """Check what the clients were told at the end."""
        unanswered = [call for call in self.history.calls if call.responded is None]
        assert {call.status for call in self.history.calls} <= {0, 200, 202, 404, 409, 503}
        failed = [call.answer for call in unanswered if call.status == 503]
        assert all((answer["code"], answer["status"]) == ("unavailable", 503) for answer in failed)
        assert all("store cannot be used" in answer["detail"] for answer in failed)
        assert sum(call.status == 200 for call in self.history.calls) > 10
        assert unanswered  # the calls that the full disk has stopped


def check_restart(zygote, path, load):
    """Check that a new server on the same file has all that was acknowledged, and goes on."""
    load.auditor.check(thoroughly=True)
    check_all(load.history, load.auditor.logs())
    child = zygote.start(path)
    wait_until_ready(child.port())
    for name, rows in load.auditor.logs().items():
        status, shown = request(child.port(), "GET", f"/v1/experiments/{name}")
        assert (status, shown["seq"] >= len(rows)) == (200, True)
        status, _ = request(child.port(), "POST", f"/v1/experiments/{name}/decisions")
        assert status == 200
    assert child.kill(signal.SIGTERM) == 0, child.errors()


def check_error(path, code, out, err, reason):
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert str(path) in line
    assert reason in line
    assert "what it acknowledged is stored" in line


def test_a_file_that_may_not_grow(zygote, tmp_path):
    """The limit of the size of files stops a commit in the middle of its pages."""
    path = tmp_path / "robandit.db"
    server = Server(path)
    server.wait_until_ready()
    load = Load(path, server.port)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (400_000, 400_000))
    code, out, err = load.run_until_end(server.process)
    load.check_answers()
    check_error(path, code, out, err, "reading or writing failed")
    check_restart(zygote, path, load)


def private_disk(folder, outside):
    """Return a command line that runs a server on a small disk of its own, and copies the files from it at the end."""
    inside = folder / "disk"
    inside.mkdir()
    serve = [sys.executable, "-m", "robandit", "serve", "--no-auth", "--port", "0"]
    serve += ["--store", f"sqlite:{inside / 'robandit.db'}"]
    script = (
        f"mount -t tmpfs -o size=400k tmpfs {shlex.quote(str(inside))} && {shlex.join(serve)}; code=$?; "
        f"cp {shlex.quote(str(inside))}/robandit.db* {shlex.quote(str(outside))} 2>&1; exit $code"
    )
    return ["unshare", "--mount", "sh", "-c", script]


def may_mount(folder):
    script = f"mount -t tmpfs -o size=64k tmpfs {shlex.quote(str(folder))}"
    try:
        return subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_full_disk(zygote, tmp_path, monkeypatch):
    if not may_mount(tmp_path):
        pytest.skip("only the system's administrator may mount a small disk")
    outside = tmp_path / "outside"
    outside.mkdir()
    command = private_disk(tmp_path, outside)
    popen = subprocess.Popen
    monkeypatch.setattr("helpers.serving.subprocess.Popen", lambda _, **options: popen(command, **options))
    server = Server(outside / "robandit.db")
    monkeypatch.undo()
    server.wait_until_ready()
    load = Load(outside / "robandit.db", server.port)
    code, out, err = load.run_until_end(server.process)
    load.check_answers()
    check_error(tmp_path / "disk" / "robandit.db", code, out, err, "the disk is full")
    check_restart(zygote, outside / "robandit.db", load)


def test_no_room_at_the_start(zygote, tmp_path):
    """A server that may not write does not start, and says why. The next one has everything."""
    path = tmp_path / "robandit.db"
    child = zygote.start(path)
    wait_until_ready(child.port())
    create_experiments(child.port())
    child.kill()
    command = [sys.executable, "-m", "robandit", "serve", "--no-auth", "--port", "0", "--store", f"sqlite:{path}"]
    script = f"ulimit -f 0; exec {shlex.join(command)}"
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert str(path) in line
    child = zygote.start(path)
    wait_until_ready(child.port())
    assert request(child.port(), "GET", "/v1/experiments/plain")[0] == 200
    child.kill()
