"""The schema registry over HTTP: versions by offset, and appends that are checked."""

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.gateway.streams.extensions.conftest import Stream, refusal

A = {"type": "object", "required": ["a"]}
B = {"type": "object", "required": ["b"]}


def test_versions_hold_from_offsets_on_and_appends_must_fit(json_stream: Stream) -> None:
    stream = json_stream
    first = stream.set_schema(A)
    assert stream.post({"a": 1}, {"a": 2}).status == 204
    assert refusal(stream.post({"a": 3}, {"b": 1})) == (
        400, 'body: message 1: "a" is a required property',
    )  # fmt: skip
    second = stream.set_schema(B, if_match='"1"')
    assert stream.post({"a": 4}).status == 400
    assert stream.post({"b": 1}).status == 204
    shown = stream.get("/_schema")

    assert [first.status, second.status] == [201, 201]
    assert first.headers["etag"] == '"1"'
    assert [first.json["version"], second.json["version"]] == [1, 2]
    assert [first.json["from_offset"]["offset"], second.json["from_offset"]["offset"]] == [0, 2]
    assert stream.values == [{"a": 1}, {"a": 2}, {"b": 1}]
    assert (shown.json["schema"], shown.headers["etag"]) == (B, '"2"')
    assert shown.json["versions"] == [first.json, second.json]
    assert stream.get("/_schema?version=1").json["schema"] == A
    assert stream.get("/_details").json["schema_version"] == 2
    assert refusal(stream.get("/_schema?version=3"))[0] == 404


def test_the_schema_in_force_is_not_set_again(json_stream: Stream) -> None:
    first, again = json_stream.set_schema(A), json_stream.set_schema(A)

    assert (first.status, again.status) == (201, 200)
    assert again.json == first.json


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_match": '"1"'}, 412),
        ({"if_match": '"0"'}, 201),
        ({"if_match": "*"}, 201),
        ({"if_none_match": "*"}, 201),
        ({"if_match": "x"}, 400),
    ],
)
def test_a_caller_names_the_version_that_must_be_in_force(
    json_stream: Stream, headers: dict[str, str], status: int
) -> None:
    assert json_stream.set_schema(A, **headers).status == status
    assert json_stream.get("/_schema").status == (200 if status == 201 else 404)


def test_a_first_schema_must_fit_what_the_stream_has(json_stream: Stream) -> None:
    json_stream.post({"a": 1}, {"a": 2})

    refused = json_stream.set_schema(B)
    taken = json_stream.set_schema(A)

    assert refusal(refused)[0] == 409
    assert "have messages that do not fit" in refusal(refused)[1].replace("has", "have")
    assert (taken.status, taken.json["from_offset"]["offset"]) == (201, 2)


def test_a_wrong_schema_changes_nothing(json_stream: Stream) -> None:
    for schema in ({"type": "text"}, {"$ref": "http://127.0.0.1:1/"}, 3, {"pattern": "(?=a)"}):
        assert json_stream.set_schema(schema).status == 400
    assert json_stream.ask("PUT", "/_schema", b"{").status == 400
    assert json_stream.ask("PUT", "/_schema", b'"' + b"x" * 70_000 + b'"').status == 413

    assert json_stream.get("/_schema").status == 404
    assert json_stream.post({"anything": 1}).status == 204


def test_only_json_streams_that_are_there_have_schemas(stream: Stream) -> None:
    assert stream.set_schema(A).status == 404
    stream.put(content_type="text/plain")

    assert refusal(stream.set_schema(A)) == (
        409, f"schema: {stream.path} is text/plain; only JSON can have a schema",
    )  # fmt: skip


def test_what_is_wrong_with_a_stream_goes_before_what_is_wrong_with_a_message(
    json_stream: Stream,
) -> None:
    json_stream.set_schema(A)
    producer = {"producer_id": "p", "producer_epoch": "0", "producer_seq": "0"}
    assert json_stream.post({"a": 1}, **producer).status == 200

    # A repeat is a repeat, whatever it has.
    assert json_stream.post({"b": 1}, **producer).status == 204
    assert json_stream.post({"b": 1}, content_type="text/plain").status == 409
    json_stream.ask("POST", stream_closed="true")
    closed = json_stream.post({"b": 1})

    assert (closed.status, closed.headers["stream-closed"]) == (409, "true")
    assert json_stream.values == [{"a": 1}]


def test_a_stream_that_is_created_again_has_no_schema(json_stream: Stream) -> None:
    json_stream.set_schema(A)
    json_stream.post({"a": 1})

    json_stream.ask("DELETE")
    json_stream.put()

    assert json_stream.post({"b": 1}).status == 204
    assert json_stream.get("/_schema").status == 404


def test_a_fork_begins_without_a_schema(json_stream: Stream) -> None:
    json_stream.set_schema(A)
    json_stream.post({"a": 1})
    fork = Stream(json_stream.gateway, json_stream.path + "/fork")

    assert fork.put(stream_forked_from=json_stream.path).status == 201

    assert fork.post({"b": 1}).status == 204
    assert fork.values == [{"a": 1}, {"b": 1}]


def test_a_schema_of_another_program_is_left_to_it(
    json_stream: Stream, server: ServerProcess
) -> None:
    with queueber.connect(server.address) as client:
        topic = client.topic(json_stream.path)
        topic.set_schema(b"\x00avro")

        assert json_stream.post({"a": 1}).status == 409
        assert json_stream.set_schema(A).status == 409
        assert json_stream.get("/_schema").status == 409
        assert [each.version for each in topic.schemas()] == [1]
    assert json_stream.values == []
