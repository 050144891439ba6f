"""Streams are created once, expire when nobody uses them, and have forks."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.gateway.streams.conftest import ZERO, Stream

New = Callable[[], Stream]


def test_of_many_that_create_a_stream_one_does(stream: Stream) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: stream.put(b"%d" % n), range(8)))

    assert sorted(each.status for each in found) == [200] * 7 + [201]
    assert len({each.headers["stream-next-offset"] for each in found}) == 1
    assert len(stream.get().body) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "text/html"},
        {"stream_ttl": "61"},
        {"stream_ttl": "60", "content_type": "text/html"},
        {},
        {"stream_expires_at": "2040-01-01T00:00:00Z"},
        {"stream_ttl": "60", "stream_closed": "true"},
        {"stream_ttl": "60", "stream_forked_from": "elsewhere"},
    ],
)
def test_a_stream_that_is_something_else_is_left_as_it_is(
    stream: Stream, new_stream: New, headers: dict[str, str]
) -> None:
    stream.put(b"a", stream_ttl="60")
    if "stream_forked_from" in headers:
        other = new_stream()
        other.put()
        headers = {**headers, "stream_forked_from": other.path}
    before = (stream.state(), stream.head().headers["stream-ttl"])

    refused = stream.put(b"b", **headers)

    assert (refused.status, refused.code) == (409, "ALREADY_EXISTS")
    assert (stream.state(), stream.head().headers["stream-ttl"]) == before
    same = stream.put(b"b", stream_ttl="60", content_type="TEXT/plain; charset=utf-8")
    assert same.status == 200
    assert same.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    "headers",
    [
        {"stream_ttl": "01"},
        {"stream_ttl": "60", "stream_expires_at": "2040-01-01T00:00:00Z"},
        {"stream_fork_offset": ZERO},
        {"stream_fork_sub_offset": "0"},
        {"content_type": "x" * 300},
        {"content_type": "application/json"},
    ],
)
def test_a_wrong_header_creates_nothing(stream: Stream, headers: dict[str, str]) -> None:
    refused = stream.put(b"no json", **headers)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert stream.head().status == 404


def test_an_expiry_is_shown_as_a_time(stream: Stream) -> None:
    stream.put(stream_expires_at="2040-01-01T01:00:00.25+01:00")

    shown = stream.head().headers

    assert shown["stream-expires-at"] == "2040-01-01T00:00:00.250Z"
    assert "stream-ttl" not in shown
    assert stream.put(stream_expires_at="2040-01-01T00:00:00.250Z").status == 200


def test_a_stream_that_nobody_uses_expires_and_its_path_is_free(stream: Stream) -> None:
    stream.put(b"a", stream_ttl="1")
    time.sleep(0.6)
    assert stream.get().body == b"a"  # it counts as use
    time.sleep(0.6)
    assert stream.head().status == 200  # it does not
    time.sleep(0.6)

    statuses = [stream.head().status, stream.get().status, stream.post(b"x").status]

    assert statuses == [404, 404, 404]
    assert stream.put(b"new", content_type="text/html").status == 201
    assert stream.get().body == b"new"


def test_the_address_of_a_new_stream_is_whole(stream: Stream) -> None:
    created = stream.put()

    address = f"http://{stream.gateway.address}/v1/stream/{stream.path}"
    assert created.headers["location"] == address


# --- forks ----------------------------------------------------------------------------------------


def test_a_fork_of_bytes_is_cut_where_it_is_asked_for(stream: Stream, new_stream: New) -> None:
    stream.put(b"abc")
    anchor = stream.tail
    stream.post(b"defgh")
    stream.post(b"ij")
    found = {}

    for further in range(7):
        fork = new_stream()
        answered = fork.put(
            b"!",
            stream_forked_from=f"/v1/stream/{stream.path}",
            stream_fork_offset=anchor,
            stream_fork_sub_offset=str(further),
        )
        found[further] = (answered.status, fork.get().body)

    whole = b"defgh"
    assert found == {further: (201, b"abc" + whole[:further] + b"!") for further in range(6)} | {
        6: (400, found[6][1])
    }
    assert stream.get().body == b"abcdefghij"


def test_a_fork_is_repeated_only_as_it_is(stream: Stream, new_stream: New) -> None:
    stream.put(b"abcdef")
    fork = new_stream()
    asked = {"stream_forked_from": stream.path, "stream_fork_offset": ZERO}

    statuses = [
        fork.put(b"", **asked, stream_fork_sub_offset="3").status,
        fork.put(b"", **asked, stream_fork_sub_offset="3").status,
        fork.put(b"", **asked, stream_fork_sub_offset="4").status,
        fork.put(stream_forked_from=stream.path).status,
        fork.put().status,
    ]

    assert statuses == [201, 200, 409, 200, 409]
    assert fork.get().body == b"abc"


def test_offsets_of_a_fork_are_those_of_its_source(stream: Stream, new_stream: New) -> None:
    stream.put(b"a")
    middle = stream.tail
    stream.post(b"b")
    fork = new_stream()
    fork.put(b"c", stream_forked_from=stream.path)

    assert fork.get(f"?offset={middle}").body == b"bc"
    assert fork.tail > stream.tail > middle


def test_a_fork_lives_on_without_its_source(stream: Stream, new_stream: New) -> None:
    stream.put(b"a")
    fork = new_stream()
    fork.put(b"b", stream_forked_from=stream.path)

    assert stream.delete().status == 204

    assert [stream.get().status, stream.head().status, stream.post(b"x").status] == [410] * 3
    assert [stream.delete().status, stream.put().status] == [410, 409]
    assert new_stream().put(stream_forked_from=stream.path).status == 409
    assert fork.get().body == b"ab"
    assert fork.delete().status == 204
    give_up_at = time.monotonic() + 5
    while stream.get().status != 404:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    assert stream.put().status == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"stream_ttl": "0"},
        {"stream_expires_at": "2020-01-01T00:00:00Z"},
        {"stream_expires_at": "1970-01-01T00:00:00Z"},
        {"stream_expires_at": "1900-01-01T00:00:00Z"},
        {"stream_expires_at": "0001-01-01T00:00:00+01:00"},
    ],
)
def test_a_stream_whose_time_is_over_is_created_and_gone(
    stream: Stream, headers: dict[str, str]
) -> None:
    created = stream.put(b"x", **headers)
    time.sleep(0.01)

    assert created.status == 201
    assert created.headers["stream-next-offset"].endswith("_" + "1".zfill(16))
    assert stream.head().status == 404


def test_a_stream_may_expire_at_the_end_of_time(stream: Stream) -> None:
    end = "9999-12-31T23:59:59-01:00"

    found = [stream.put(stream_expires_at=end), stream.put(stream_expires_at=end)]

    assert [each.status for each in found] == [201, 200]
    assert stream.head().headers["stream-expires-at"] == "9999-12-31T23:59:59.999Z"


def test_the_offset_of_a_new_stream_is_behind_its_own_content(new_stream: New) -> None:
    """However fast others append."""
    for _ in range(10):
        stream = new_stream()

        def append(_: int, stream: Stream = stream) -> None:
            while stream.post(b"!").status == 404:
                continue

        with ThreadPoolExecutor(3) as threads:
            appends = threads.map(append, range(3))
            created = stream.put(b"first")
            list(appends)

        assert created.headers["stream-next-offset"].endswith("_" + "1".zfill(16))
        assert stream.get(f"?offset={created.headers['stream-next-offset']}").body == b"!!!"


@pytest.mark.parametrize("path", ["..", "a/../b", "a/.", "%2e%2e/b"])
def test_a_path_that_browsers_read_as_another_is_refused(stream: Stream, path: str) -> None:
    stream.path = path

    refused = [stream.put(), stream.post(b"x"), stream.get()]

    assert [each.status for each in refused] == [400] * 3
    assert "have a meaning in URLs" in refused[0].json["detail"]
