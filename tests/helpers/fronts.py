"""The documented proxies before a decision service: only addresses, ports and certificates differ from what users copy."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.ports import free_port

ROOT = Path(__file__).parents[2]
PROXIES = ROOT / "deploy" / "proxy"


class Front(NamedTuple):
    """The address that clients use."""

    host: str
    port: int
    certificate: Path | None = None

    @property
    def url(self):
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}"

    @property
    def context(self):
        return None if self.certificate is None else ssl.create_default_context(cafile=str(self.certificate))

    def connected(self):
        """Return a socket that speaks HTTP/1.1."""
        plain = socket.create_connection((self.host, self.port), timeout=30)
        return plain if self.certificate is None else self.context.wrap_socket(plain, server_hostname=self.host)


def needs(*programs):
    """Skip the test, and name the program that is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: make front installs it")


def replaced(text, *pairs):
    """Return the text with all first parts replaced, each of which must be there."""
    for old, new in pairs:
        assert old in text, f"the documented file has no {old!r}"
        text = text.replace(old, new)
    return text


def certified(folder):
    """Make a certificate for localhost, and return its file and that of its key."""
    needs("openssl")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return certificate, key


@contextmanager
def running(command, folder, front):
    """Run a proxy until the end of the block, beginning when it accepts connections."""
    places = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | places)
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    front.connected().close()
                    break
                except OSError:
                    assert process.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < until, (folder / "log").read_text()
                    time.sleep(0.05)
            yield front
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def nginx(server, folder):
    """nginx with the file of deploy/."""
    needs("nginx")
    certificate, key = certified(folder)
    port = free_port()
    text = replaced(
        (PROXIES / "robandit.conf").read_text(),
        ("127.0.0.1:8000", f"{server.host}:{server.port}"),
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/decisions.pem", str(certificate)),
        ("/etc/ssl/decisions.key", str(key)),
    )
    user = "user root; " if os.geteuid() == 0 else ""  # who may read the folder of the test
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off; {user}pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {places} {text} }}"
    )
    with running(["nginx", "-p", folder, "-c", path], folder, Front("localhost", port, certificate)) as front:
        yield front


@contextmanager
def caddy(server, folder):
    """Caddy with the file of deploy/."""
    certificate, key = certified(folder)
    port = free_port()
    text = replaced(
        (PROXIES / "Caddyfile").read_text(),
        ("decisions.example.org {", f"https://localhost:{port} {{\n\ttls {certificate} {key}"),
        ("127.0.0.1:8000", f"{server.host}:{server.port}"),
    )
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n"
    with _caddy(options + text, folder, Front("localhost", port, certificate)) as front:
        yield front


@contextmanager
def balancer(server, folder):
    """Caddy with the file of deploy/. Both replicas are the same server, under two names."""
    port = free_port()
    text = replaced(
        (ROOT / "deploy" / "Caddyfile").read_text(),
        ("admin off", "admin off\n\tdefault_bind 127.0.0.1"),
        ("\n:8000 {", f"\n:{port} {{"),
        ("robandit-1:8000", f"{server.host}:{server.port}"),
        ("robandit-2:8000", f"localhost:{server.port}"),
    )
    with _caddy(text, folder, Front("127.0.0.1", port)) as front:
        yield front


@contextmanager
def _caddy(text, folder, front):
    needs("caddy")
    path = folder / "Caddyfile"
    path.write_text(text)
    with running(["caddy", "run", "--config", path, "--adapter", "caddyfile"], folder, front) as ready:
        yield ready
