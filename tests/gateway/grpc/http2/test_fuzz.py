"""Whatever a peer sends, a connection answers or ends, and nothing of it is left behind."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.gateway.grpc.http2 import connection as module
from queueber.gateway.grpc.http2.frames import FRAME_BYTES, PREFACE, frame
from queueber.gateway.grpc.http2.frames import settings as settings_frame
from tests.gateway.grpc.http2.peer import Peer, message

STREAMS = st.integers(0, 9)
FRAMES = st.builds(frame, st.integers(0, 11), st.integers(0, 255), STREAMS, st.binary(max_size=60))
DIGITS = st.sampled_from(["0", "5", "6", "x", "9" * 5000])


class _Log:
    """Stands for the log: a connection writes into it only what is our fault."""

    def __init__(self) -> None:
        self.faults: list[object] = []

    def error(self, event: str, **facts: object) -> None:
        self.faults.append((event, facts))


LOG = _Log()


@pytest.fixture(autouse=True)
def _log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "log", LOG)


async def _is_survived(sent: list[bytes | tuple[int, str]], cuts: int) -> None:
    peer = Peer()
    whole = PREFACE + settings_frame({})
    for each in sent:
        if isinstance(each, bytes):
            whole += each
        else:
            stream, length = each
            whole += peer.head(stream, ("content-length", length)) + message(stream, b"")
    for at in range(0, len(whole), cuts):
        peer.connection.data_received(whole[at : at + cuts])
        await asyncio.sleep(0)
    await peer.heard()
    peer.connection.connection_lost(None)
    await peer.heard()
    assert peer.shared.bodies.used == 0
    assert (peer.connection.calls.open, peer.shared.waiting) == ({}, {})
    assert peer.shared.connections == set()
    assert LOG.faults == []


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            FRAMES,
            st.tuples(st.sampled_from([1, 3, 5, 7]), DIGITS),
            st.builds(message, STREAMS, st.binary(max_size=20), is_last=st.booleans()),
            st.binary(min_size=1, max_size=20),
        ),
        max_size=12,
    ),
    st.integers(1, 2 * FRAME_BYTES),
)
def test_any_frames_are_survived(sent: list[bytes | tuple[int, str]], cuts: int) -> None:
    asyncio.run(_is_survived(sent, cuts))
