"""Details of a stream, its records, and the list of streams."""

import base64

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.gateway.streams.extensions.conftest import Stream


def test_details_tell_what_a_stream_is_and_holds(json_stream: Stream) -> None:
    json_stream.post({"a": 1}, {"a": 2})

    shown = json_stream.get("/_details")

    found = shown.json
    origin = found["origin"]
    assert found.pop("created_at_ms") <= found["own"].pop("oldest_ms")
    assert found["own"].pop("last_ms") > 0
    assert found["own"].pop("bytes") >= 14
    assert found == {
        "path": json_stream.path,
        "content_type": "application/json",
        "closed": False,
        "origin": origin,
        "number": origin,
        "first": {"token": f"{origin:016d}_{0:016d}", "offset": 0},
        "next": {"token": f"{origin:016d}_{2:016d}", "offset": 2},
        "own": {"messages": 2},
        "inherited": {"messages": 0, "bytes": 0},
        "forked_from": None,
        "forks": 0,
        "ttl_seconds": None,
        "expires_at_ms": None,
        "retention": {"seconds": 0.0, "bytes": 0, "messages": 0, "compaction": None},
        "profile": "generic",
        "schema_version": 0,
        "groups": [],
    }


def test_details_of_a_fork_tell_what_it_shares(json_stream: Stream) -> None:
    json_stream.post(1, 2, 3)
    fork = Stream(json_stream.gateway, json_stream.path + "/fork")
    fork.put(stream_forked_from=json_stream.path, stream_ttl="3600")
    fork.post(4)

    found = fork.get("/_details").json

    whole = json_stream.get("/_details").json["own"]["bytes"]
    assert (found["own"]["messages"], found["inherited"]) == (1, {"messages": 3, "bytes": whole})
    assert 0 < found["own"]["bytes"] < whole
    assert found["forked_from"]["path"] == json_stream.path
    assert found["forked_from"]["offset"]["offset"] == 3
    assert found["ttl_seconds"] == 3600.0
    assert json_stream.get("/_details").json["forks"] == 1


def test_details_have_a_tag_that_changes_with_them(json_stream: Stream) -> None:
    first = json_stream.get("/_details")
    again = json_stream.get("/_details", if_none_match=first.headers["etag"])
    json_stream.post(1)
    later = json_stream.get("/_details", if_none_match=first.headers["etag"])

    assert (again.status, again.body, later.status) == (304, b"", 200)
    assert first.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("last", ["_details", "_schema", "_profile", "_records"])
def test_of_a_stream_that_is_not_there_nothing_is_told(stream: Stream, last: str) -> None:
    assert stream.get(f"/{last}").status == 404


# --- records --------------------------------------------------------------------------------------


def test_records_are_messages_with_their_places_and_times(json_stream: Stream) -> None:
    json_stream.post({"a": 1}, "text", None)

    page = json_stream.get("/_records?limit=2").json
    rest = json_stream.get(f"/_records?offset={page['next_offset']['token']}").json

    assert [each["data"] for each in page["records"]] == [{"a": 1}, "text"]
    assert [each["data"] for each in rest["records"]] == [None]
    assert [each["encoding"] for each in page["records"]] == ["json", "json"]
    assert page["records"][0]["next_offset"] == page["records"][1]["offset"]
    assert all(each["time_ms"] > 0 for each in page["records"])
    assert (page["up_to_date"], rest["up_to_date"], rest["closed"]) == (False, True, False)
    json_stream.ask("POST", stream_closed="true")
    assert json_stream.get("/_records?offset=now").json["closed"] is True


@pytest.mark.parametrize(
    ("kind", "body", "data", "encoding"),
    [
        ("text/plain", "grüße".encode(), "grüße", "text"),
        ("text/plain", b"\xff", base64.b64encode(b"\xff").decode(), "base64"),
        ("application/octet-stream", b"\x00\x01", "AAE=", "base64"),
    ],
)
def test_records_of_bytes(stream: Stream, kind: str, body: bytes, data: str, encoding: str) -> None:
    stream.put(body, content_type=kind)

    (record,) = stream.get("/_records").json["records"]

    assert (record["data"], record["encoding"]) == (data, encoding)


@pytest.mark.parametrize(
    ("query", "status"),
    [("offset=x", 400), ("limit=0", 400), ("limit=1001", 400), ("other=1", 400),
     ("offset=0000000000000000_0000000000000099", 400),
     ("offset=0000000009999999_0000000000000000", 410)],
)  # fmt: skip
def test_wrong_questions_for_records_are_refused(
    json_stream: Stream, query: str, status: int
) -> None:
    json_stream.post(1)

    assert json_stream.get(f"/_records?{query}").status == status


# --- the list -------------------------------------------------------------------------------------


def test_streams_are_listed_by_prefix_page_by_page(stream: Stream, server: ServerProcess) -> None:
    root = f"list-{stream.path.replace('/', '-')}"
    paths = [f"{root}/{name}" for name in "abc"]
    for path in paths:
        Stream(stream.gateway, path).put()

    def ask(query: str) -> tuple[list[str], bool]:
        found = stream.gateway.ask("GET", f"/v1/streams?{query}").json
        return found["streams"], found["more"]

    assert ask(f"prefix={root}/") == (paths, False)
    assert ask(f"prefix={root}/&limit=2") == (paths[:2], True)
    assert ask(f"prefix={root}/&limit=2&after={paths[1]}") == (paths[2:], False)
    assert ask("prefix=none/") == ([], False)
    assert stream.gateway.ask("GET", "/v1/streams?limit=0").status == 400


def test_what_the_gateway_keeps_for_itself_is_not_listed(
    stream: Stream, server: ServerProcess
) -> None:
    with queueber.connect(server.address) as client:
        for name in ("__ds/keys", "__ds/zz", "__dt", "__dr", "zz/last"):
            client.create_topic(name)
    stream.put()

    found = stream.gateway.ask("GET", "/v1/streams?limit=1000").json["streams"]
    paged = stream.gateway.ask("GET", "/v1/streams?after=__ds/keys&limit=1000").json["streams"]

    assert not [each for each in found if each.startswith("__ds/")]
    assert {"__dr", "__dt", "zz/last", stream.path} <= set(found)
    assert "__dt" in paged
    assert not [each for each in paged if each.startswith("__ds/")]
    assert stream.gateway.ask("GET", "/v1/streams?prefix=__ds/").json["streams"] == []
