"""Profiles: what a stream of each is created with, and which messages it takes."""

from typing import Any

import pytest

from queueber.gateway.streams.extensions.profiles import PROFILES
from queueber.gateway.streams.extensions.schemas.rules import Rules
from tests.gateway.streams.extensions.conftest import Stream, refusal


def change(key: str = "1", operation: str = "insert", **more: Any) -> dict[str, Any]:
    return {"type": "user", "key": key, "headers": {"operation": operation}, **more}


def test_every_schema_of_a_profile_has_a_bound() -> None:
    documents = [each.document for each in PROFILES.values()]

    assert [Rules(each).document.profile for each in documents if each] == ["state", "events"]


@pytest.mark.parametrize(
    ("message", "is_taken"),
    [
        (change(value={"name": "Ann"}), True),
        (change(operation="update", value=1, old_value=0), True),
        (change(operation="delete"), True),
        ({"headers": {"control": "reset"}}, True),
        ({"headers": {"control": "snapshot-start", "offset": "7"}}, True),
        (change(), False),
        (change(operation="update"), False),
        (change(operation="upsert", value=1), False),
        (change(key="", value=1), False),
        ({"headers": {"control": "stop"}}, False),
        ({"type": "user", "key": "1", "value": 1}, False),
        ({"key": "1", "value": 1, "headers": {"operation": "insert"}}, False),
        (3, False),
    ],
)
def test_a_state_stream_takes_messages_of_the_state_protocol(
    gateway: Any, stream: Stream, message: Any, is_taken: bool
) -> None:
    stream.put(stream_profile="state")

    assert stream.post(message).status == (204 if is_taken else 400)
    assert stream.values == ([message] if is_taken else [])


def test_a_state_stream_has_the_key_of_each_change(stream: Stream) -> None:
    stream.put(stream_profile="state")
    stream.post(change("1", value=1), change("2", value=2), change("a/b", "delete"))
    stream.post({"headers": {"control": "reset"}})

    keys = [each["key"] for each in stream.get("/_records").json["records"]]
    details = stream.get("/_details").json
    assert keys == ["user/1", "user/2", "user/a/b", None]
    assert (details["profile"], details["retention"]["compaction"]) == ("state", "key")
    assert details["content_type"] == "application/json"
    assert stream.get("/_profile").json["key"] == ["type", "key"]


def test_events_need_a_time_and_are_kept_for_a_month(stream: Stream) -> None:
    assert stream.put(b'[{"time":"yesterday"}]', stream_profile="events").status == 400
    assert stream.get().status == 404
    assert stream.put(b'[{"time":"2026-01-01T00:00:00Z"}]', stream_profile="events").status == 201
    assert stream.post({"time": 3}).status == 400

    assert stream.get("/_details").json["retention"]["seconds"] == 30 * 24 * 3600
    assert len(stream.values) == 1


def test_a_schema_of_the_user_is_checked_beside_that_of_the_profile(stream: Stream) -> None:
    stream.put(stream_profile="events")

    assert stream.set_schema({"required": ["name"]}).json["version"] == 2
    assert stream.post({"name": "a"}).status == 400
    assert stream.post({"time": "2026-01-01T00:00:00Z"}).status == 400
    assert stream.post({"time": "2026-01-01T00:00:00Z", "name": "a"}).status == 204
    shown = stream.get("/_schema").json
    assert (shown["profile"], shown["schema"]) == ("events", {"required": ["name"]})
    assert shown["profile_schema"]["required"] == ["time"]
    # The profile is as it was asked for: the schema of the user is no part of that.
    assert stream.put(stream_profile="events").status == 200


def test_the_profile_is_part_of_what_a_repeated_put_compares(stream: Stream) -> None:
    assert stream.put(stream_profile="state").status == 201
    assert stream.put(stream_profile="state").status == 200
    assert [stream.put().status, stream.put(stream_profile="events").status] == [409, 409]


def test_wrong_profiles_create_nothing(stream: Stream) -> None:
    wrong = stream.put(stream_profile="queue")
    assert refusal(wrong) == (
        400, "stream-profile: 'queue' is none; possible are generic, state, events",
    )  # fmt: skip
    assert stream.put(stream_profile="state", content_type="text/plain").status == 400
    assert stream.put(stream_profile="state", stream_retention_bytes="10").status == 400

    assert stream.get().status == 404


def test_a_stream_without_a_profile_is_generic(json_stream: Stream) -> None:
    shown = json_stream.get("/_profile").json

    assert (shown["profile"], shown["schema"], shown["settings"]) == ("generic", None, {})
    assert json_stream.put(stream_profile="generic").status == 200
