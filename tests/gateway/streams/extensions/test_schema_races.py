"""Two gateways, schemas that change, streams that are created again: every message fits."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from queueber.testing import ServerProcess
from tests.gateway.streams.extensions.conftest import Stream
from tests.support.http import GatewayProcess, running_gateway

_numbers = count()
CHANGES = 12


@pytest.fixture(scope="module")
def gateways(server: ServerProcess, gateway: GatewayProcess) -> Iterator[list[GatewayProcess]]:
    with running_gateway(server.address) as other:
        yield [gateway, other]


def only(name: str) -> dict[str, Any]:
    return {"type": "object", "required": [name], "additionalProperties": False,
            "properties": {name: {"type": "integer"}}}  # fmt: skip


def appending(stream: Stream, name: Callable[[int], str], is_over: threading.Event) -> list[Any]:
    """Append values of changing names until it is over; those that were taken."""
    taken, at = [], 0
    while not is_over.is_set():
        at += 1
        values = [{name(at): at * 10 + each} for each in range(3)]
        answered = stream.post(*values)
        assert answered.status in (204, 400, 404, 409), answered.body
        if answered.status == 204:
            taken += values
    return taken


def versions_of(stream: Stream) -> list[tuple[int, str]]:
    """From which offset on which name is the only one, by the registry."""
    listed = stream.get("/_schema").json["versions"]
    found = []
    for each in listed:
        schema = stream.get(f"/_schema?version={each['version']}").json["schema"]
        found.append((each["from_offset"]["offset"], schema["required"][0]))
    return found


def test_no_message_is_stored_that_does_not_fit_the_version_at_its_offset(
    gateways: list[GatewayProcess],
) -> None:
    path = f"race/{next(_numbers)}"
    streams = [Stream(each, path) for each in gateways]
    streams[0].put()
    assert streams[0].set_schema(only("a")).status == 201
    over = threading.Event()

    with ThreadPoolExecutor(8) as pool:
        appends = [
            pool.submit(appending, streams[at % 2], lambda n: "ab"[n % 2], over) for at in range(4)
        ]
        for at in range(CHANGES):
            # Both gateways set one at the same moment.
            done = list(
                pool.map(lambda s, at=at: s.set_schema(only("ba"[at % 2])).status, streams)
            )
            assert set(done) <= {200, 201, 503}
        over.set()
        taken = [each for one in appends for each in one.result()]

    records = streams[0].get("/_records?limit=1000").json["records"]
    versions = versions_of(streams[1])
    wrong = []
    for record in records:
        offset = record["offset"]["offset"]
        name = next(name for start, name in reversed(versions) if start <= offset)
        if list(record["data"]) != [name]:
            wrong.append((record, name))
    assert wrong == []
    assert len(versions) >= CHANGES
    assert {"a", "b"} <= {name for _, name in versions}
    stored = sorted(json.dumps(each["data"]) for each in records)
    assert stored == sorted(map(json.dumps, taken))


def test_a_first_schema_and_appends_at_once_leave_only_what_fits(
    gateways: list[GatewayProcess],
) -> None:
    for _ in range(5):
        path = f"race/{next(_numbers)}"
        streams = [Stream(each, path) for each in gateways]
        streams[0].put()
        with ThreadPoolExecutor(3) as pool:
            appended = pool.submit(streams[1].post, {"b": 1})
            is_set = pool.submit(streams[0].set_schema, only("a"))
            statuses = appended.result().status, is_set.result().status

        values = streams[0].values
        # Either came first, and shut the other out.
        assert (statuses, values) in [((204, 409), [{"b": 1}]), ((400, 201), [])]


def test_a_stream_that_is_created_again_with_another_schema_is_not_mistaken_for_the_old(
    gateways: list[GatewayProcess],
) -> None:
    path = f"race/{next(_numbers)}"
    streams = [Stream(each, path) for each in gateways]
    for name in ("a", "b", "a"):
        streams[0].put()
        assert streams[0].set_schema(only(name)).status == 201
        # The other gateway knows version 1 of the stream before.
        assert streams[1].post({"c": 1}).status == 400
        other = "b" if name == "a" else "a"
        assert streams[1].post({other: 1}).status == 400
        assert streams[1].post({name: 1}).status == 204
        assert streams[1].values == [{name: 1}]
        streams[0].ask("DELETE")


def test_of_two_that_name_the_same_version_one_wins(gateways: list[GatewayProcess]) -> None:
    path = f"race/{next(_numbers)}"
    streams = [Stream(each, path) for each in gateways]
    streams[0].put()
    streams[0].set_schema(only("a"))

    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(lambda s, name: s.set_schema(only(name), if_match='"1"'), streams, "bc")
        )

    assert sorted(each.status for each in done) == [201, 412]
    assert versions_of(streams[0])[0] == (0, "a")
    assert len(versions_of(streams[0])) == 2
