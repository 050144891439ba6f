"""Streams of a protected server: who may only append."""

from collections.abc import Iterator

import pytest

from queueber.testing import running_server
from tests.gateway.streams.conftest import Stream
from tests.support.callers import add_token
from tests.support.http import GatewayProcess, running_gateway


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = tmp_path_factory.mktemp("callers") / "tokens"
    made = {role: f"Bearer {add_token(file, role)}" for role in ("admin", "producer")}
    return {**made, "file": str(file)}


@pytest.fixture(scope="module")
def gateway(tokens: dict[str, str]) -> Iterator[GatewayProcess]:
    with (
        running_server("--tokens-file", tokens["file"]) as server,
        running_gateway(server.address) as running,
    ):
        yield running


def test_a_producer_appends_and_neither_closes_nor_deletes(
    stream: Stream, tokens: dict[str, str]
) -> None:
    admin, producer = tokens["admin"], tokens["producer"]
    stream.put(authorization=admin)

    appended = stream.post(b"x", authorization=producer)
    refused = [
        stream.post(stream_closed="true", authorization=producer),
        stream.post(b"x", stream_closed="true", authorization=producer),
        stream.delete(authorization=producer),
        stream.get(authorization=producer),
        stream.head(authorization=producer),
    ]

    assert appended.status == 204
    assert [each.status for each in refused] == [403] * 5
    read = stream.get(authorization=admin)
    assert (read.body, read.headers.get("stream-closed")) == (b"x", None)


def test_a_producer_is_told_that_a_stream_is_closed(stream: Stream, tokens: dict[str, str]) -> None:
    stream.put(stream_closed="true", authorization=tokens["admin"])

    refused = stream.post(b"x", authorization=tokens["producer"])

    assert (refused.status, refused.headers.get("stream-closed")) == (409, "true")


def test_what_a_caller_read_is_kept_for_that_caller_alone(
    stream: Stream, tokens: dict[str, str]
) -> None:
    stream.put(b"a", stream_closed="true", authorization=tokens["admin"])
    start = stream.head(authorization=tokens["admin"]).headers["stream-next-offset"]
    start = start[:17] + "0" * 16

    read = stream.get(f"?offset={start}", authorization=tokens["admin"])

    assert read.headers["cache-control"] == "private, max-age=31536000, immutable"
