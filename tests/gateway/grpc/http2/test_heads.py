"""Heads of requests are read as any reader of HPACK reads them, however often they were seen."""

from urllib.parse import unquote

import pytest
from hpack import Decoder, Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.gateway.grpc.http2.frames import ConnectionFault
from queueber.gateway.grpc.http2.heads import Heads, MalformedHead, trailers

BASE = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/M")]
MORE = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"te-x", b"authorization", b"grpc-timeout"]),
        st.sampled_from([b"", b"1", b"x" * 60, b"y" * 2000]),
        st.booleans(),
    ),
    max_size=4,
    unique_by=lambda each: each[0],
)


@settings(deadline=None)
@given(st.lists(st.tuples(MORE, st.booleans()), min_size=1, max_size=12), st.integers(0, 4096))
def test_a_head_means_what_a_reader_without_memory_reads(
    heads: list[tuple[list[tuple[bytes, bytes, bool]], bool]], table_size: int
) -> None:
    encoder, reader, plain = Encoder(), Heads(65_536), Decoder()
    for more, is_smaller in heads:
        if is_smaller:
            encoder.header_table_size = table_size
        for _ in range(2):  # the second one refers to the first
            fields = [*((name, value, False) for name, value in BASE), *more]
            block = encoder.encode(fields)
            wanted = {bytes(name): bytes(value) for name, value in plain.decode(block, raw=True)}
            assert reader.read(block) == wanted
            assert wanted == {name: value for name, value, _ in fields}


@pytest.mark.parametrize(
    "fields",
    [
        [(b":method", b"POST"), (b":path", b"/")],
        [*BASE, (b":method", b"POST")],
        [*BASE, (b"a", b"1"), (b":authority", b"h")],
        [*BASE, (b":status", b"200")],
        [*BASE, (b"Upper", b"1")],
        [*BASE, (b"connection", b"close")],
        [*BASE, (b"te", b"gzip")],
        [*BASE, (b"a", b"1\r\nb: 2")],
        [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"")],
    ],
)
def test_what_is_no_head_of_a_request_is_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(MalformedHead):
        Heads(4096).read(Encoder().encode(fields))


def test_a_head_that_is_too_large_or_cannot_be_read_ends_the_connection() -> None:
    with pytest.raises(ConnectionFault, match="more than 4096 bytes"):
        Heads(4096).read(Encoder().encode([*BASE, (b"a", b"x" * 5000)]))
    for block in (b"\xff\xff\xff\xff\xff", b"\x80", b"\x00\x05ab"):
        with pytest.raises(ConnectionFault):
            Heads(4096).read(block)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_the_text_of_a_status_comes_back(text: str) -> None:
    fields = dict(Decoder(1 << 20).decode(trailers(5, text), raw=True))
    assert fields[b"grpc-status"] == b"5"
    sent = fields.get(b"grpc-message", b"")
    assert all(0x20 <= byte <= 0x7E for byte in sent)
    assert unquote(sent.decode()) == text.encode("utf-8", "replace").decode()
