"""The server over TLS: with our client, and with pycapnp's own over asyncio's TLS."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import capnp
import pytest
import uvloop

import queueber
from queueber import TlsOptions
from queueber.errors import Unauthenticated, Unavailable
from queueber.limits import MIB
from queueber.schema import wire
from queueber.testing import ServerProcess, running_server
from queueber.tls import client_context
from tests.support.certificates import HOSTS, Authority, new_authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[ServerProcess]:
    with running_server(*authority.server_options()) as server:
        yield server
        assert server.stop() == 0
        lines = server.log_file.read_text().splitlines()
        # Whatever is no JSON was written by a library: a warning, or a stack trace.
        assert [line for line in lines if not line.startswith("{")] == []
        assert not {json.loads(line)["event"] for line in lines} & {"unexpected_error", "crashed"}


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def loop_runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


def events_of(server: ServerProcess, name: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in server.log_file.read_text().splitlines()]
    return [event for event in events if event["event"] == name]


def open_socket(server: ServerProcess) -> socket.socket:
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def open_tls(server: ServerProcess, authority: Authority) -> ssl.SSLSocket:
    context = client_context(authority.trusted())
    return context.wrap_socket(open_socket(server), server_hostname="127.0.0.1")


# --- calls ----------------------------------------------------------------------------------------


def test_large_and_small_messages_go_both_ways(
    server: ServerProcess, authority: Authority, loop_runner: asyncio.Runner
) -> None:
    sizes = [0, 1, 100, 16_384, 65_536, 262_144, 1_000_003, 4 * MIB]
    contents = [os.urandom(size) for size in sizes]

    async def main() -> None:
        async with queueber.connect_async(server.address, tls=authority.trusted()) as client:
            queue = client.queue("sizes")
            for each in contents:
                await queue.add(each)
            await queue.add(contents)
            found: list[bytes] = []
            while lease := await queue.poll(100):
                found += [item.contents for item in lease]
                await queue.remove(lease.ids, lease=lease.id)
            assert found == contents + contents

    loop_runner.run(main())


def test_blocking_client_and_reconnects(authority: Authority) -> None:
    options = authority.server_options()
    with (
        running_server(*options) as server,
        queueber.connect(server.address, tls=authority.trusted()) as client,
    ):
        queue = client.queue()
        queue.add(b"before")
        assert server.stop() == 0
        server.start()

        queue.add(b"after")

        assert queue.stats().ready == 2


def test_hundred_connections_at_once_are_served(
    server: ServerProcess, authority: Authority
) -> None:
    async def caller(number: int) -> int:
        async with queueber.connect_async(server.address, tls=authority.trusted()) as client:
            queue = client.queue(f"hundred-{number % 10}")
            ids = await queue.add([os.urandom(1000) for _ in range(20)])
            return len(ids)

    async def main() -> list[int]:
        return await asyncio.gather(*map(caller, range(100)))

    assert uvloop.run(main()) == [20] * 100


def test_client_of_pycapnp_itself_works_and_its_hang_up_is_noticed(
    server: ServerProcess, authority: Authority
) -> None:
    host, port = server.address.split(":")

    async def main() -> None:
        async with capnp.kj_loop():
            stream = await capnp.AsyncIoStream.create_connection(
                host, int(port), ssl=client_context(authority.trusted()), server_hostname=host
            )
            service = capnp.TwoPartyClient(stream).bootstrap().cast_as(wire.Service)
            queue = service.queue("plain").queue
            await queue.add(req={"contents": [os.urandom(300_000)] * 4})
            request = {"numItems": 4, "leaseValidityMs": 60_000, "bound": True}
            assert len((await queue.poll(req=request)).resp.items) == 4
            stream.close()
        # On the same loop, which so does not end before the socket is closed.
        async with queueber.connect_async(server.address, tls=authority.trusted()) as client:
            give_up_at = time.monotonic() + 10
            while (await client.queue("plain").stats()).ready < 4:
                assert time.monotonic() < give_up_at

    asyncio.run(main())


def test_shutdown_answers_waiting_polls_before_it_ends_connections(authority: Authority) -> None:
    with running_server(*authority.server_options()) as server:

        async def main() -> None:
            async with queueber.connect_async(
                server.address, tls=authority.trusted(), retry_timeout=0
            ) as client:
                waiting = [asyncio.ensure_future(client.queue().poll(wait=60)) for _ in range(20)]
                while (await client.queue().stats()).waiting_polls < 1:
                    pass
                assert server.process is not None
                server.process.send_signal(signal.SIGTERM)
                assert not any([await each for each in waiting])

        asyncio.run(main())
        assert server.process is not None
        assert server.process.wait(20) == 0


# --- the end of a connection ----------------------------------------------------------------------


def test_connection_that_ends_without_a_goodbye_is_over(
    server: ServerProcess, authority: Authority
) -> None:
    """TCP ends below TLS: nobody can know whether something is missing, so nothing is answered."""
    with open_tls(server, authority) as tls:
        plain = socket.socket(fileno=os.dup(tls.fileno()))
        plain.shutdown(socket.SHUT_WR)
        plain.close()
        assert tls.recv(1) == b""


def test_goodbye_is_answered_with_one(server: ServerProcess, authority: Authority) -> None:
    tls = open_tls(server, authority)
    plain = tls.unwrap()
    assert plain.recv(1) == b""
    plain.close()


def test_bytes_that_are_no_cap_n_proto_end_their_connection_only(
    server: ServerProcess, authority: Authority
) -> None:
    with open_tls(server, authority) as tls:
        tls.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while tls.recv(65536):
                pass


def test_record_that_was_changed_on_the_way_ends_the_connection(
    server: ServerProcess, authority: Authority
) -> None:
    with open_tls(server, authority) as tls:
        plain = socket.socket(fileno=os.dup(tls.fileno()))
        plain.sendall(b"\x17\x03\x03\x00\x40" + os.urandom(64))
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while tls.recv(65536):
                pass
        plain.close()


# --- handshakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x16", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", bytes(5000), b"\xff" * 70_000],
)
def test_garbage_instead_of_a_handshake_does_no_harm(
    server: ServerProcess, authority: Authority, sent: bytes
) -> None:
    for ends in (True, False):
        with open_socket(server) as plain, contextlib.suppress(ConnectionError):
            plain.sendall(sent)
            if ends:
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(1000):
                    pass
    with queueber.connect(server.address, tls=authority.trusted()) as client:
        client.queue().stats()


def test_old_versions_of_tls_are_refused(server: ServerProcess, authority: Authority) -> None:
    context = client_context(authority.trusted())
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1

    with open_socket(server) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_silent_callers_keep_nobody_out(server: ServerProcess, authority: Authority) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(open_socket(server))
        began = time.monotonic()

        with queueber.connect(server.address, tls=authority.trusted()) as client:
            client.queue().stats()

        # 256 handshakes may be under way: those that are a second old make room.
        assert time.monotonic() - began < 5
    failed = events_of(server, "handshakes_failed")
    assert all(set(each) >= {"count", "reason", "caller"} for each in failed)


# --- who trusts whom ------------------------------------------------------------------------------


def test_client_says_what_is_wrong_with_a_certificate(
    server: ServerProcess, authority: Authority, tmp_path: Path
) -> None:
    other = new_authority(tmp_path / "other")
    expired = running_server("--tls-certificate", str(authority.issue_expired("expired")))
    with expired as server_expired:
        for address, tls, text in (
            (server.address, True, "not from an authority that this client trusts"),
            (server.address, other.trusted(), "not from an authority that this client trusts"),
            (
                server.address,
                TlsOptions(ca=authority.ca_file, server_name="queue.example"),
                "the server's certificate is not for 'queue.example'",
            ),
            (server_expired.address, authority.trusted(), "certificate has expired; renew it"),
        ):
            began = time.monotonic()
            with pytest.raises(Unauthenticated, match=text) as refused:
                queueber.connect(address, tls=tls)
            assert str(refused.value).startswith(f"cannot connect to {address} with TLS: ")
            assert time.monotonic() - began < 3  # it is not tried again


def test_client_without_tls_is_told_that_the_server_may_want_it(server: ServerProcess) -> None:
    with pytest.raises(Unavailable, match="closed the connection before it answered; if it speaks"):
        queueber.connect(server.address, connect_timeout=0.2)


def test_client_with_tls_is_told_that_the_server_speaks_none(authority: Authority) -> None:
    with running_server() as plain, pytest.raises((Unauthenticated, Unavailable)) as refused:
        queueber.connect(plain.address, tls=authority.trusted(), connect_timeout=0.2)

    assert "not speak TLS" in str(refused.value)


def test_only_clients_with_a_certificate_are_served_where_it_is_needed(
    authority: Authority, tmp_path: Path
) -> None:
    own = authority.issue("client", "ocr.example", common_name="ocr-worker")
    foreign = new_authority(tmp_path / "foreign").issue("client", "ocr.example")
    options = (*authority.server_options(), "--tls-client-ca", str(authority.ca_file))
    with running_server(*options) as server:
        with queueber.connect(
            server.address, tls=TlsOptions(ca=authority.ca_file, certificate=own)
        ) as client:
            client.queue().add(b"x")

        for tls in (authority.trusted(), TlsOptions(ca=authority.ca_file, certificate=foreign)):
            with pytest.raises(Unavailable, match=r"it may want a client certificate \("):
                queueber.connect(server.address, tls=tls, connect_timeout=0.2)


# --- new certificates -----------------------------------------------------------------------------


def test_sighup_takes_a_new_certificate_for_new_connections_and_keeps_the_old_one_if_it_is_bad(
    tmp_path: Path,
) -> None:
    first, second = new_authority(tmp_path / "first"), new_authority(tmp_path / "second")
    file = first.issue("server", *HOSTS)
    with running_server("--tls-certificate", str(file)) as server:
        assert server.process is not None

        def reload(content: bytes, event: str, count: int) -> dict[str, Any]:
            assert server.process is not None
            file.write_bytes(content)
            server.process.send_signal(signal.SIGHUP)
            give_up_at = time.monotonic() + 10
            while len(found := events_of(server, event)) < count:
                assert time.monotonic() < give_up_at
            return found[-1]

        with queueber.connect(server.address, tls=first.trusted()) as client:
            client.queue().add(b"x")

            new = second.issue("server", *HOSTS).read_bytes()
            assert reload(new, "reloaded", 1)["what"] == ["certificates"]
            assert client.queue().stats().ready == 1  # its connection has stayed
            queueber.connect(server.address, tls=second.trusted()).close()
            with pytest.raises(Unauthenticated, match="not from an authority"):
                queueber.connect(server.address, tls=first.trusted())

            failed = reload(b"no certificate", "reload_failed", 1)
            assert failed["what"] == "certificates"
            assert failed["reason"].startswith(f"tls-certificate: {file} are not a certificate")
            queueber.connect(server.address, tls=second.trusted()).close()
