"""TLS: the certificate is checked. The certificate is made for this test."""

import shutil
import ssl
import subprocess

import pytest

from helpers.clients import clients
from helpers.fault_proxy import FaultProxy
from helpers.serving import Server
from robandit.errors import ServiceUnavailable

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def refused():
    return pytest.raises(ServiceUnavailable, match="certificate verify failed")


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A server behind a proxy with TLS, and its certificate."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with (
        Server(folder / "robandit.db", "--relaxed-durability") as server,
        FaultProxy(server.host, server.port, seed=1, share=0.0, tls=context) as proxy,
    ):
        yield proxy, str(certificate)


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_trusted_certificate(kind, secured, monkeypatch):
    proxy, certificate = secured
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with clients(kind) as make, make(proxy.url) as client:
        provider = client.create(kind, ["a", "b"])
        assert provider.reward(provider.decide(), 1.0).outcome == "applied"


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_certificate_that_nobody_vouches_for(kind, secured):
    proxy, _ = secured
    with clients(kind) as make, make(proxy.url, connect_timeout=30.0, timeout=60.0) as client, refused():
        client.experiment(kind).decide()


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_another_name_than_that_of_the_certificate(kind, secured, monkeypatch):
    proxy, certificate = secured
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    url = proxy.url.replace("localhost", "127.0.0.1")
    with clients(kind) as make, make(url, connect_timeout=30.0, timeout=60.0) as client, refused():
        client.experiment(kind).decide()


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_server_without_tls(kind, tmp_path):
    with Server(tmp_path / "robandit.db", "--relaxed-durability") as server:
        url = server.url.replace("http://", "https://")
        expected = f"^the server at {url} speaks http, not https: use Client\\('{server.url}'\\)$"
        with (
            clients(kind) as make,
            make(url, connect_timeout=30.0, timeout=60.0) as client,
            pytest.raises(ServiceUnavailable, match=expected),
        ):
            client.experiment(kind).decide()


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_something_that_comes_while_a_connection_with_tls_is_idle(kind, secured, monkeypatch):
    """TLS sends messages of its own then, such as session tickets. They are not answers."""
    proxy, certificate = secured
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with clients(kind) as make, make(proxy.url, connect_timeout=30.0, timeout=60.0, read_timeout=60.0) as client:
        provider = client.create(f"{kind}-idle", ["a", "b"])
        idle = client._core.caller.pool._idle[:]
        provider.reward_many([(decision, 1.0) for decision in provider.decide_many(1_000)])
        assert idle == client._core.caller.pool._idle
