"""Clients that are known by their certificate, without a token."""

import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import queueber
from queueber.auth.callers import Caller
from queueber.auth.token_file import Entry
from queueber.errors import PermissionDenied, Unauthenticated
from queueber.model import Grant
from queueber.rpc.protection import ProtectedHandler
from queueber.testing import ServerProcess, running_server
from queueber.tls import TlsOptions
from tests.support.callers import add_entry, add_token, remove_entries
from tests.support.certificates import Authority, new_authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return new_authority(tmp_path / "certificates")


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[ServerProcess]:
    grants = (Grant("service", ("ocr-*", "default"), ()),)
    add_entry(tmp_path / "tokens.toml", Entry("ocr", grants, certificate="ocr-1"))
    options = (
        *authority.server_options(),
        "--tls-client-ca",
        str(authority.ca_file),
        "--tokens-file",
        str(tmp_path / "tokens.toml"),
    )
    with running_server(*options) as running:
        yield running


def with_certificate(authority: Authority, common_name: str) -> TlsOptions:
    file = authority.issue(common_name, common_name, common_name=common_name)
    return replace(authority.trusted(), certificate=file)


def test_a_certificate_is_a_caller_with_just_its_rights(
    authority: Authority, server: ServerProcess
) -> None:
    tls = with_certificate(authority, "ocr-1")
    with queueber.connect(server.address, tls=tls) as client:
        assert client.who_am_i().name == "ocr"
        client.queue().add(b"work")
        assert client.queue().poll()
        with pytest.raises(PermissionDenied, match="lacks any right on queue 'mail'"):
            client.queue("mail").stats()


def test_a_certificate_that_is_not_listed_or_none_at_all_is_nobody(
    authority: Authority, server: ServerProcess
) -> None:
    for tls in (with_certificate(authority, "other"), authority.trusted()):
        with pytest.raises(Unauthenticated, match="authenticate first"):
            queueber.connect(server.address, tls=tls)


def test_a_token_counts_also_beside_a_certificate(
    authority: Authority, server: ServerProcess, tmp_path: Path
) -> None:
    token = add_token(tmp_path / "tokens.toml", "reader", name="by token")
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)

    for tls in (with_certificate(authority, "ocr-1"), authority.trusted()):
        with queueber.connect(server.address, tls=tls, token=token) as client:
            assert client.who_am_i().name == "by token"


def test_a_certificate_that_is_taken_out_ends_its_connections(
    authority: Authority, server: ServerProcess, tmp_path: Path
) -> None:
    tls = with_certificate(authority, "ocr-1")
    with queueber.connect(server.address, tls=tls) as client:
        remove_entries(tmp_path / "tokens.toml", "ocr")
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)

        def call_until_refused() -> None:
            for _ in range(200):
                client.who_am_i()
                time.sleep(0.05)

        with pytest.raises(Unauthenticated, match="authenticate first"):
            call_until_refused()


def test_no_certificate_counts_while_a_password_is_being_checked() -> None:
    """Else one connection would be two callers, of which a reload ends only the later one."""
    known = Caller("ocr", (Grant("worker", ("*",), ()),))
    authenticator = SimpleNamespace(by_certificate=lambda _name: known)
    connection = SimpleNamespace(
        _session=SimpleNamespace(certificate_name="ocr-1", caller=None),
        _protection=SimpleNamespace(authenticator=authenticator),
        _inner=None,
        _is_checking=True,
        _admitted=lambda caller: caller,
    )
    found = cast(Any, ProtectedHandler._by_certificate)

    assert found(connection) is None
    connection._is_checking = False
    assert found(connection) is known
