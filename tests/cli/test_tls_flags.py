"""Commands that talk to a server with TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.cli.spark.session import connection_options
from queueber.cli.target import Target
from queueber.cli.tls_flags import tls_options
from queueber.errors import InvalidArgument
from queueber.testing import ServerProcess, running_server
from queueber.tls import TlsOptions
from tests.cli.conftest import Cli
from tests.support.certificates import Authority, new_authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_server(authority: Authority) -> Iterator[ServerProcess]:
    options = (*authority.server_options(), "--tls-client-ca", str(authority.ca_file))
    with running_server(*options) as server:
        yield server


def test_command_connects_with_tls_by_flags_and_by_variables(
    tls_server: ServerProcess, authority: Authority
) -> None:
    client = str(authority.issue("client", "c.example"))
    flags = ("--tls-ca", str(authority.ca_file), "--tls-certificate", client, "--tls-key", client)
    variables = {
        "QUEUEBER_TLS": "true",
        "QUEUEBER_TLS_CA": str(authority.ca_file),
        "QUEUEBER_TLS_CLIENT_CERTIFICATE": client,
    }

    added = Cli(tls_server.address)("add", "hello", *flags)
    peeked = Cli(tls_server.address, variables)("peek", "--raw")

    assert (added.code, added.stderr) == (0, "")
    assert (peeked.code, peeked.stdout) == (0, "hello\n")


def test_command_says_what_is_wrong_and_names_the_flag(
    tls_server: ServerProcess, authority: Authority, tmp_path: Path
) -> None:
    cli = Cli(tls_server.address)
    trusting = ("--tls-ca", str(authority.ca_file), "--connect-timeout", "0.2")

    plain = cli("stats", "--connect-timeout", "0.2")
    untrusted = cli("stats", "--tls")
    missing = cli("stats", "--tls-ca", str(tmp_path / "none.pem"))
    without_certificate = cli("stats", *trusting)
    only_a_key = cli("stats", "--tls-key", "key.pem")

    assert (plain.code, untrusted.code, missing.code, only_a_key.code) == (3, 4, 2, 2)
    assert "if it speaks TLS, connect with tls=True or --tls" in plain.stderr
    assert "not from an authority that this client trusts" in untrusted.stderr
    assert missing.stderr.startswith(f"Error: --tls-ca: cannot read {tmp_path}/none.pem: No such")
    assert "it may want a client certificate" in without_certificate.stderr
    assert only_a_key.stderr.startswith("Error: --tls-key: there is no certificate for it")


def test_worker_and_its_processes_connect_with_tls(
    tls_server: ServerProcess, authority: Authority
) -> None:
    client = str(authority.issue("client", "c.example"))
    flags = ("--tls-ca", str(authority.ca_file), "--tls-certificate", client)
    cli = Cli(tls_server.address)
    cli("add", "-q", "tls-work", "a", *flags)
    cli("add", "-q", "tls-work", "b", *flags)

    worked = cli.run(
        "work", "builtins:bytes", "-q", "tls-work", "--until", "empty", "--json",
        "--processes", "1", *flags,
    )  # fmt: skip

    assert worked.code == 0, worked.stderr
    assert '"failed": 2' in worked.stdout  # bytes() of an item raises; both were tried


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, None),
        ({"tls": True}, TlsOptions()),
        ({"tls_ca": "ca.pem"}, TlsOptions(ca="ca.pem")),
        ({"tls_certificate": "c", "tls_key": "k"}, TlsOptions(certificate="c", key="k")),
        ({"tls": True, "tls_ca": ""}, TlsOptions()),
    ],
)
def test_flags_become_options(given: dict[str, object], options: TlsOptions | None) -> None:
    unset = {"tls": False, "tls_ca": None, "tls_certificate": None, "tls_key": None}
    assert tls_options(**{**unset, **given}) == options  # type: ignore[arg-type]


def test_key_alone_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^tls\.key: there is no certificate"):
        tls_options(tls=False, tls_ca=None, tls_certificate=None, tls_key="k")


def test_tasks_of_spark_get_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = Target("h:1", 1.0, use_json=False, tls_ca="ca.pem")

    assert connection_options(target) == {
        "address": "h:1",
        "token": None,
        "tokenFile": None,
        "tls": "true",
        "tlsCa": str(tmp_path / "ca.pem"),
        "tlsCertificate": None,
        "tlsKey": None,
    }
    plain = connection_options(Target("h:1", 1.0, use_json=False))
    assert {name for name, value in plain.items() if value is not None} == {"address"}
