"""TLS on both sides of the gateway: HTTPS for its callers, and to a server that speaks TLS."""

import http.client
import json
import signal
import ssl
import time
from pathlib import Path

import pytest

from queueber.testing import running_server
from tests.support.certificates import HOSTS, Authority, new_authority
from tests.support.http import GatewayProcess, running_gateway

pytestmark = pytest.mark.slow


def ask(gateway: GatewayProcess, authority: Authority, path: str) -> tuple[int, object]:
    context = ssl.create_default_context(cafile=authority.ca_file)
    connection = http.client.HTTPSConnection(*gateway.host_port, context=context, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, body


def served_number(gateway: GatewayProcess, authority: Authority) -> str:
    """The serial number of the certificate that a new connection gets."""
    context = ssl.create_default_context(cafile=authority.ca_file)
    connection = http.client.HTTPSConnection(*gateway.host_port, context=context, timeout=20)
    connection.connect()
    assert isinstance(connection.sock, ssl.SSLSocket)
    shown = connection.sock.getpeercert()
    connection.close()
    assert shown is not None
    return str(shown["serialNumber"])


def test_both_sides_speak_tls_and_a_new_certificate_is_read_on_sighup(tmp_path: Path) -> None:
    authority = new_authority(tmp_path / "authority")
    certificate = authority.issue("gateway", *HOSTS)
    with (
        running_server(*authority.server_options()) as server,
        running_gateway(
            server.address,
            "--tls-certificate", str(certificate), "--server-tls-ca", str(authority.ca_file),
        ) as gateway,
    ):  # fmt: skip
        assert ask(gateway, authority, "/readyz") == (200, {"status": "ready"})
        first = served_number(gateway, authority)

        authority.issue("gateway", *HOSTS)
        gateway.process.send_signal(signal.SIGHUP)
        give_up_at = time.monotonic() + 20
        while served_number(gateway, authority) == first:
            assert time.monotonic() < give_up_at
            time.sleep(0.1)

        certificate.write_text("no certificate")
        gateway.process.send_signal(signal.SIGHUP)
        give_up_at = time.monotonic() + 20
        while "reload_failed" not in gateway.log_file.read_text():
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
        assert ask(gateway, authority, "/readyz") == (200, {"status": "ready"})


def test_plain_http_to_a_port_with_tls_is_not_answered(tmp_path: Path) -> None:
    authority = new_authority(tmp_path / "authority")
    certificate = authority.issue("gateway", *HOSTS)
    with (
        running_gateway("127.0.0.1:1", "--tls-certificate", str(certificate)) as gateway,
        pytest.raises((OSError, http.client.HTTPException)),
    ):
        gateway.ask("GET", "/healthz")
