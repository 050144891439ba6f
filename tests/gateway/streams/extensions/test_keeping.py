"""Retention and compaction by headers, and paths that are reserved."""

import pytest

from tests.gateway.streams.extensions.conftest import Stream, refusal


def test_limits_are_settings_of_the_stream_and_a_repeated_put_compares_them(
    stream: Stream,
) -> None:
    headers = {
        "stream_retention_seconds": "60",
        "stream_retention_bytes": "1000000",
        "stream_retention_messages": "5",
    }
    assert stream.put(**headers).status == 201
    assert stream.put(**headers).status == 200

    assert stream.get("/_details").json["retention"] == {
        "seconds": 60.0, "bytes": 1000000, "messages": 5, "compaction": None,
    }  # fmt: skip
    assert stream.put().status == 409
    assert stream.put(**headers | {"stream_retention_seconds": "61"}).status == 409


def test_only_the_last_message_of_a_key_is_kept(stream: Stream) -> None:
    assert stream.put(stream_compaction="key", content_type="text/plain").status == 201
    for key, text in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        done = stream.ask("POST", "", text, content_type="text/plain", stream_key=key)
        assert done.status == 204

    records = stream.get("/_records").json["records"]

    assert [(each["key"], each["data"]) for each in records][-2:] == [("b", "2"), ("a", "3")]
    assert stream.get("/_details").json["retention"]["compaction"] == "key"
    assert stream.put(stream_compaction="key", content_type="text/plain").status == 200
    assert stream.put(content_type="text/plain").status == 409


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"stream_retention_seconds": "0"}, "stream-retention-seconds"),
        ({"stream_retention_seconds": "1.5"}, "stream-retention-seconds"),
        ({"stream_retention_seconds": "99999999999999"}, "stream-retention-seconds"),
        ({"stream_retention_bytes": "-1"}, "stream-retention-bytes"),
        ({"stream_retention_messages": "x"}, "stream-retention-messages"),
        ({"stream_compaction": "all"}, "stream-compaction"),
        ({"stream_compaction": "key", "stream_retention_bytes": "1"}, "stream-retention-bytes"),
        ({"stream_key": "k" * 600}, "stream-key"),
    ],
)
def test_wrong_headers_create_nothing(stream: Stream, headers: dict[str, str], text: str) -> None:
    status, detail = refusal(stream.put(**headers))

    assert (status, detail.partition(":")[0]) == (400, text)
    assert stream.get().status == 404


def test_a_key_is_that_of_one_message(json_stream: Stream) -> None:
    assert json_stream.post({"a": 1}, {"a": 2}, stream_key="k").status == 400
    assert json_stream.post({"a": 1}, stream_key="k").status == 204

    (record,) = json_stream.get("/_records").json["records"]
    assert (record["key"], record["data"]) == ("k", {"a": 1})


@pytest.mark.parametrize("last", ["_details", "_schema", "_profile", "_records"])
def test_reserved_paths_are_no_streams(stream: Stream, last: str) -> None:
    encoded = "%5F" + last[1:]

    assert refusal(stream.ask("PUT", f"/{encoded}"))[0] == 400
    alone = Stream(stream.gateway, last)
    assert refusal(alone.put())[0] == 400
    assert stream.ask("DELETE", f"/{last}").status == 405
