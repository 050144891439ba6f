"""The client's end of a connection: answers that came before its end are read."""

import asyncio
from collections.abc import Callable

import pytest

from queueber.client.transport.client_stream import ClientStream
from tests.support.stream_sides import Reader, Socket, receive


class TlsSocket(Socket):
    def get_extra_info(self, name: str) -> object:
        return object() if name == "ssl_object" else super().get_extra_info(name)

    def write_eof(self) -> None:
        raise NotImplementedError


class Rig:
    def __init__(self) -> None:
        self.socket, self.reader = TlsSocket(), Reader()
        self.stream = ClientStream(self.reader, memoryview(bytearray(16)))
        self.stream.connection_made(self.socket)


def on_a_loop(test: Callable[[Rig], None]) -> None:
    async def main() -> None:
        test(Rig())

    asyncio.run(main())


def test_answers_that_came_before_the_end_are_read_after_it() -> None:
    def test(rig: Rig) -> None:
        receive(rig.stream, rig.socket, b"12345678abc")
        assert not rig.stream.eof_received()  # TLS cannot stay half open
        rig.socket.is_closed = True
        rig.stream.connection_lost(None)
        assert (rig.reader.losses, rig.stream.is_over.is_set()) == ([], False)

        rig.reader.ask(8, 8)
        rig.reader.ask(8, 8)

        assert rig.reader.read == b"12345678"
        assert (rig.reader.ends, rig.reader.losses) == (1, [None])
        assert rig.stream.is_over.is_set()

    on_a_loop(test)


def test_end_of_a_connection_that_is_closed_meanwhile_is_told_once() -> None:
    def test(rig: Rig) -> None:
        receive(rig.stream, rig.socket, b"12345678")
        rig.stream.eof_received()
        rig.stream.connection_lost(None)

        rig.stream.close()
        rig.stream.close()

        assert rig.reader.losses == [None]

    on_a_loop(test)


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
def test_loss_is_told_at_once_if_nothing_is_unread(error: Exception | None) -> None:
    def test(rig: Rig) -> None:
        rig.stream.connection_lost(error)

        assert rig.reader.losses == [error]
        assert rig.stream.failure is error
        assert rig.stream.is_over.is_set()

    on_a_loop(test)


def test_end_of_what_is_written_ends_the_connection() -> None:
    def test(rig: Rig) -> None:
        rig.stream.write(b"last words")
        assert rig.stream.can_write_eof()
        rig.stream.write_eof()

        assert (rig.socket.sent, rig.socket.is_closed) == ([b"last words"], True)

    on_a_loop(test)
