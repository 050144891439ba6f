"""Steps over queues and topics in one commit, over HTTP."""

from typing import Any

import pytest

from tests.support.http import GatewayProcess, to_base64


@pytest.fixture
def work(gateway: GatewayProcess, topic: str, queue: str) -> dict[str, Any]:
    """Messages of two groups and items, all of them held."""
    messages = [{"payload": to_base64(each)} for each in (b"a", b"b")]
    gateway.ask("POST", f"{topic}/messages", {"messages": messages})
    gateway.ask("PUT", f"{topic}/groups/ordered", {})
    gateway.ask("PUT", f"{topic}/groups/shared", {"settings": {"kind": "shared"}})
    gateway.ask("POST", f"{queue}/items", {"items": [{"contents": "YQ=="}, {"contents": "Yg=="}]})
    polled = gateway.ask("POST", f"{queue}/poll", {"items_max": 2}).json
    shared = gateway.ask("POST", f"{topic}/groups/shared/poll", {"messages_max": 2}).json
    return {
        "topic": topic.rpartition("/")[2].replace("%2F", "/"),
        "queue": queue.rpartition("/")[2],
        "ids": [each["id"] for each in polled["items"]],
        "lease": polled["lease"],
        "shared": shared["lease"],
    }


def steps_of(work: dict[str, Any]) -> dict[str, Any]:
    done, failed = work["ids"]
    return {
        "acks": [
            {"topic": work["topic"], "group": "ordered", "offsets": [0, 1]},
            {
                "topic": work["topic"],
                "group": "shared",
                "offsets": [0],
                "partition": 0,
                "lease": work["shared"],
            },
        ],
        "publications": [{"topic": f"{work['topic']}-out", "messages": [{"payload": "eA=="}]}],
        "queues": {
            work["queue"]: {
                "add": [{"contents": "bmV3", "key": "k", "priority": 9}],
                "batch": "b",
                "complete": [{"id": done, "lease": work["lease"], "result": "cg=="}],
                "fail": [{"id": failed, "lease": work["lease"], "error": "no", "delay_ms": 60_000}],
            }
        },
    }


def test_all_steps_happen(
    gateway: GatewayProcess, topic: str, queue: str, work: dict[str, Any]
) -> None:
    done = gateway.ask("POST", "/v1/together", steps_of(work))

    assert done.status == 200
    [published] = done.json["published"]
    assert published["offsets"] == [0]
    of_queue = done.json["queues"][work["queue"]]
    [added] = of_queue.pop("ids")
    assert of_queue == {"duplicates": [], "failed": ["retried"]}
    assert gateway.ask("GET", f"{topic}/groups/ordered").json["cursors"] == [2]
    assert gateway.ask("GET", f"{topic}/groups/shared").json["lag"] == 1
    [ready] = gateway.ask("GET", f"{queue}/items").json["items"]
    assert (ready["id"], ready["key"], ready["batch"]) == (added, "k", "b")
    [result] = gateway.ask("GET", f"{queue}/results").json["results"]
    assert (result["id"], result["result"]) == (work["ids"][0], "cg==")


@pytest.mark.parametrize("wrong", ["lease", "condition", "queue", "group"])
def test_nothing_happens_if_one_step_cannot(
    gateway: GatewayProcess, topic: str, queue: str, work: dict[str, Any], wrong: str
) -> None:
    steps = steps_of(work)
    of_queue = steps["queues"][work["queue"]]
    if wrong == "lease":
        of_queue["complete"][0]["lease"] = "0" * 32
    elif wrong == "condition":
        steps["publications"][0]["expected_offset"] = 7
    elif wrong == "queue":
        steps["queues"]["no-such-queue"] = {"add": [{"contents": ""}]}
    else:
        steps["acks"][0]["group"] = "no-such-group"

    refused = gateway.ask("POST", "/v1/together", steps)

    expected = (
        (412, "FAILED_PRECONDITION") if wrong in ("lease", "condition") else (404, "NOT_FOUND")
    )
    assert (refused.status, refused.code) == expected
    assert gateway.ask("GET", f"{topic}/groups/ordered").json["cursors"] == [0]
    assert gateway.ask("GET", f"{topic}-out").status == 404
    shown = gateway.ask("GET", queue).json
    assert (shown["ready"], shown["leased"], shown["results"]) == (0, 2, 0)


def test_a_message_that_another_consumer_has_done_stops_all(
    gateway: GatewayProcess, topic: str, work: dict[str, Any]
) -> None:
    step = {"topic": work["topic"], "group": "ordered", "offsets": [0]}
    publication = {"topic": f"{work['topic']}-out", "messages": [{"payload": "eA=="}]}
    body = {"acks": [step], "publications": [publication]}

    first, second = (gateway.ask("POST", "/v1/together", body) for _ in range(2))

    assert first.status == 200
    assert (second.status, second.code) == (409, "ABORTED")
    assert gateway.ask("GET", f"{topic}-out/messages").json["end_offset"] == 1


def test_no_steps_are_no_error(gateway: GatewayProcess) -> None:
    assert gateway.ask("POST", "/v1/together", {}).json == {"published": [], "queues": {}}
