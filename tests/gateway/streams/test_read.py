"""Reads: what caches may keep, what retention deleted, and offsets of streams that are gone."""

from collections.abc import Callable

import pytest

from tests.gateway.streams.conftest import WAIT_MS, Stream

FOR_GOOD = "max-age=31536000, immutable"


def large(stream: Stream) -> str:
    """A stream of more than one answer; returns where it begins."""
    stream.put()
    for _ in range(3):
        stream.post(bytes(3 << 20))
    return stream.tail[:17] + "0" * 16


def test_what_is_before_the_tail_may_be_kept_for_good(stream: Stream) -> None:
    start = large(stream)

    sealed = stream.get(f"?offset={start}")
    middle = stream.get(f"?offset={sealed.headers['stream-next-offset']}")
    rest = stream.get(f"?offset={middle.headers['stream-next-offset']}")
    from_start = stream.get("?offset=-1")
    any_origin = stream.get("?offset=" + "0" * 16 + "_" + "0" * 16)

    assert "stream-up-to-date" not in sealed.headers
    assert sealed.headers["cache-control"] == f"public, {FOR_GOOD}"
    assert middle.headers["cache-control"] == f"public, {FOR_GOOD}"
    assert rest.headers["stream-up-to-date"] == "true"
    # Another stream may be created at this path, and more may follow at the tail.
    for each in (rest, from_start, any_origin):
        assert each.headers["cache-control"] == "no-cache"
    assert len(sealed.body) + len(middle.body) + len(rest.body) == 9 << 20


def test_the_end_of_a_closed_stream_may_be_kept_for_good(stream: Stream) -> None:
    stream.put(b"all", stream_closed="true")
    start = stream.tail[:17] + "0" * 16

    assert stream.get(f"?offset={start}").headers["cache-control"] == f"public, {FOR_GOOD}"
    assert stream.get(f"?offset={stream.tail}").headers["stream-closed"] == "true"


def test_a_long_poll_may_be_kept_for_a_minute_and_nothing_not_at_all(stream: Stream) -> None:
    stream.put(b"a")
    start, tail = stream.tail[:17] + "0" * 16, stream.tail

    got = stream.get(f"?offset={start}&live=long-poll")
    nothing = stream.get(f"?offset={tail}&live=long-poll")
    now = stream.get("?offset=now")

    assert got.headers["cache-control"] == "public, max-age=60, stale-while-revalidate=300"
    assert (nothing.status, nothing.headers["cache-control"]) == (204, "no-store")
    assert (now.status, now.headers["cache-control"]) == (200, "no-store")
    assert "etag" not in now.headers


def test_a_tag_is_that_of_the_bytes(stream: Stream) -> None:
    stream.put(b"a")
    tag = stream.get().headers["etag"]

    same = stream.get(if_none_match=f'"other", {tag}')
    stream.post(b"b")
    changed = stream.get(if_none_match=tag)
    stream.post(stream_closed="true")
    closed = stream.get(if_none_match=changed.headers["etag"])

    assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag)
    assert (changed.status, changed.body) == (200, b"ab")
    assert (closed.status, closed.body) == (200, b"ab")


def test_an_offset_of_a_stream_that_was_created_again_is_gone(stream: Stream) -> None:
    old = stream.put(b"old").headers["stream-next-offset"]
    stream.delete()
    stream.put(b"new and longer")

    for query in ("", "&live=long-poll", "&live=sse"):
        refused = stream.get(f"?offset={old}{query}")
        assert (refused.status, refused.headers["x-content-type-options"]) == (410, "nosniff")
    assert stream.get().body == b"new and longer"


def test_an_offset_before_what_is_kept_is_gone_and_the_start_is_what_is_left(
    stream: Stream,
) -> None:
    stream.put()
    start = stream.tail
    for letter in (b"a", b"b", b"c"):
        stream.post(letter)
    topic = "/v1/topics/" + stream.path.replace("/", "%2F")
    trimmed = stream.gateway.ask("POST", f"{topic}/trim", {"to": "2"})
    assert trimmed.status == 200, trimmed.body

    assert stream.get(f"?offset={start}").status == 410
    assert stream.get("?offset=-1").body == b"c"


def test_an_offset_behind_the_tail_is_refused(stream: Stream) -> None:
    tail = stream.put().headers["stream-next-offset"]
    beyond = tail[:17] + "9" * 16

    for query in ("", "&live=long-poll", "&live=sse"):
        assert stream.get(f"?offset={beyond}{query}").status == 400


@pytest.mark.parametrize(
    "query",
    ["?offset=", "?offset=a", "?offset=-1&offset=now", "?live=sse", "?live=long-poll",
     "?offset=-1&live=x", "?offset=%00", "?offset=%ff", "?offset=0+1"],
)  # fmt: skip
def test_wrong_queries_are_refused(stream: Stream, query: str) -> None:
    stream.put(b"a")

    refused = stream.get(query)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")


def test_other_parameters_are_for_others(stream: Stream) -> None:
    stream.put(b"a")

    assert stream.get("?x=1&x=2&cursor=nonsense&offset=-1").body == b"a"


def test_a_read_with_a_body_is_refused(stream: Stream) -> None:
    stream.put(b"a")

    refused = stream.gateway.ask("GET", f"/v1/stream/{stream.path}", raw=b"x")

    assert (refused.status, refused.json["detail"]) == (400, "body: this request has none")


def test_messages_of_the_topic_are_what_the_stream_has(stream: Stream) -> None:
    stream.put(b"[1,2]", content_type="application/json")
    topic = "/v1/topics/" + stream.path.replace("/", "%2F")
    stream.gateway.ask("POST", f"{topic}/messages", {"messages": [{"payload": "Mw=="}]})

    assert stream.get().json == [1, 2, 3]
    assert len(stream.gateway.ask("GET", f"{topic}/messages").json["messages"]) == 3


def test_a_topic_of_several_partitions_is_no_stream(stream: Stream) -> None:
    topic = "/v1/topics/" + stream.path.replace("/", "%2F")
    stream.gateway.ask("PUT", topic, {"partitions": 2, "content_type": "text/plain"})

    assert {stream.head().status, stream.get().status, stream.put().status} == {409}
    posted = stream.post(b"x", content_type="text/plain")
    assert (posted.status, posted.code) == (409, "FAILED_PRECONDITION")
    assert stream.gateway.ask("GET", f"{topic}/messages").json["messages"] == []


def test_a_long_poll_waits_as_long_as_the_settings_say(stream: Stream) -> None:
    stream.put()

    answered = stream.get(f"?offset={stream.tail}&live=long-poll")

    assert (answered.status, answered.body) == (204, b"")
    assert answered.headers["stream-up-to-date"] == "true"
    assert WAIT_MS > 0


@pytest.mark.parametrize("rest", ["?offset=", "?live=long-poll&offset=", "/_records?offset="])
def test_an_offset_of_a_deleted_stream_is_gone_wherever_it_lies(stream: Stream, rest: str) -> None:
    stream.put()
    for _ in range(3):
        stream.post(b"x")
    old = stream.tail
    stream.delete()
    stream.put()

    assert stream.get(rest + old).status == 410


def test_a_cache_keeps_no_bytes_of_a_fork(stream: Stream, new_stream: Callable[[], Stream]) -> None:
    """Another fork may have its path some day, whose offsets are the same."""
    stream.put(b"abc")
    fork, found = new_stream(), []
    for content in (b"one", b"two"):
        fork.put(content, stream_forked_from=stream.path, stream_closed="true")
        found.append(fork.get(f"?offset={stream.tail}"))
        fork.delete()

    assert [each.body for each in found] == [b"one", b"two"]
    assert [each.headers["cache-control"] for each in found] == ["no-cache"] * 2


def test_a_cache_is_not_told_that_an_answer_is_complete_when_it_is_so_no_more(
    stream: Stream,
) -> None:
    stream.put(b"x" * (3 << 20))
    complete = stream.get()
    stream.post(b"more")

    asked = stream.get(if_none_match=complete.headers["etag"])

    assert complete.headers["stream-up-to-date"] == "true"
    assert (asked.status, "stream-up-to-date" in asked.headers) == (200, False)
    assert stream.get(if_none_match=asked.headers["etag"]).status == 304


def test_a_browser_shows_no_stream_as_a_page_of_the_gateway(stream: Stream) -> None:
    stream.put(b"<script>steal()</script>", content_type="text/html")

    shown = stream.get()

    assert shown.headers["content-type"] == "text/html"
    assert shown.headers["content-security-policy"] == "sandbox; default-src 'none'"
