"""Every field of every method at its limit and past it: the documented error, and no change."""

from collections.abc import Iterator
from typing import Any

import pytest

from faults.hostile import messages
from faults.hostile.raw import Raw
from queueber.testing import running_server
from tests.support.field_caller import FieldCaller, fields_of, with_field
from tests.support.field_limits import KEPT, MADE, METHODS, OPTIONS, Limit, Rule


@pytest.mark.parametrize("method", METHODS)
def test_every_field_of_the_schema_has_its_limit_here(method: str) -> None:
    known = messages.METHODS[method][2]

    assert sorted(fields_of(known.param_type)) == sorted(METHODS[method].fields)


def state(caller: FieldCaller) -> Any:
    queues = caller.ask("listQueues", {})["queues"]
    for queue in queues:
        queue.pop("oldestClaimableAgeMs", None)
    loads = [each["name"] for each in caller.ask("listLoads", {}).get("loads", [])]
    topics = caller.ask("listTopics", {})
    return queues, loads, topics, caller.ask("listReaders", {})


@pytest.fixture(scope="module")
def caller() -> Iterator[FieldCaller]:
    with running_server(*OPTIONS) as server, Raw(server.address) as raw:
        caller = FieldCaller(raw)
        assert caller.code("beginLoad", METHODS["beginLoad"].valid) == ""
        assert caller.code("createTopic", {"name": KEPT}) == ""
        yield caller


@pytest.mark.parametrize("method", METHODS)
def test_fields_past_their_limit_are_refused_and_nothing_changes(
    caller: FieldCaller, method: str
) -> None:
    valid = METHODS[method].valid
    before = state(caller)
    told = {
        path: caller.code(method, with_field(valid, path, rule.past))
        for path, rule in METHODS[method].fields.items()
        if isinstance(rule, Limit)
    }

    assert told == {
        path: rule.code for path, rule in METHODS[method].fields.items() if isinstance(rule, Limit)
    }
    assert state(caller) == before


@pytest.mark.parametrize("method", METHODS)
def test_fields_at_their_limit_are_taken(caller: FieldCaller, method: str) -> None:
    valid = METHODS[method].valid

    def expected(rule: Rule) -> tuple[object, str]:
        if isinstance(rule, Limit):
            return rule.at, rule.at_code
        return rule.greatest, rule.code

    told = {}
    for path, rule in METHODS[method].fields.items():
        told[path] = caller.code(method, with_field(valid, path, expected(rule)[0]))
        assert caller.code("deleteQueue", {"name": MADE}) == ""
        assert caller.code("deleteTopic", {"name": MADE}) == ""

    assert told == {path: expected(rule)[1] for path, rule in METHODS[method].fields.items()}
