"""Every field of every method at its limit and past it: the documented error, and no change."""

import copy
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from faults.hostile import messages
from faults.hostile.raw import Raw
from queueber.testing import running_server
from tests.support.field_limits import KEPT, MADE, METHODS, OPTIONS, Limit, Rule


def fields_of(schema: Any, at: str = "") -> Iterator[str]:
    """Every field below a struct of the schema; `[]` is an element of a list."""
    for each in schema.node.struct.fields:
        path, kind = f"{at}{each.name}", each.slot.type.which()
        if kind == "struct":
            yield from fields_of(schema.fields[each.name].schema, f"{path}.")
        elif kind == "list":
            yield path
            element = each.slot.type.list.elementType.which()
            if element == "struct":
                inner = schema.fields[each.name].schema.elementType
                yield from fields_of(inner, f"{path}[].")
            else:
                yield f"{path}[]"
        else:
            yield path


@pytest.mark.parametrize("method", messages.METHODS)
def test_every_field_of_the_schema_has_its_limit_here(method: str) -> None:
    known = messages.METHODS[method][2]

    assert sorted(fields_of(known.param_type)) == sorted(METHODS[method].fields)


def with_field(params: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The same parameters with another value at a path; of a list, in its first element."""
    changed = copy.deepcopy(params)
    at: Any = changed
    *parents, last = re.findall(r"\w+|\[\]", path)
    for step, then in pairwise([*parents, last]):
        if step == "[]":
            at[0] = {} if at[0] is None else at[0]
            at = at[0]
        else:
            at = at.setdefault(step, [None] if then == "[]" else {})
    at[0 if last == "[]" else last] = value
    return changed


class Caller:
    """One connection; of each call it hears what was wrong."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._raw.send(messages.bootstrap())
        self._said = self._raw.messages()
        next(self._said)
        self._question = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._question += 1
        self._raw.send(messages.call(self._question, method, **params))
        for said in self._said:
            with messages.rpc.Message.from_bytes(said) as told:
                answer = getattr(told, "return") if told.which() == "return" else None
                if answer is None or answer.answerId != self._question:
                    continue
                self._raw.send(messages.finish(self._question))
                if answer.which() == "exception":
                    return str(answer.exception.reason)
                if method in {"queue", "topic"}:
                    return {}  # a capability, of which no more is to be seen
                known = messages.METHODS[method][2]
                return answer.results.content.as_struct(known.result_type).to_dict()
        raise AssertionError("the server hung up")

    def code(self, method: str, params: dict[str, Any]) -> str:
        """The code of the error; empty when there was none."""
        told = self.ask(method, params)
        if not isinstance(told, str):
            return ""
        found = re.match(r"(remote exception: )?(message = )?([A-Z_]+): \S", told)
        assert found, told
        return found[3]

    def state(self) -> Any:
        queues = self.ask("listQueues", {})["queues"]
        for queue in queues:
            queue.pop("oldestClaimableAgeMs", None)
        loads = [each["name"] for each in self.ask("listLoads", {}).get("loads", [])]
        topics = self.ask("listTopics", {})
        return queues, loads, topics, self.ask("listReaders", {})


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    with running_server(*OPTIONS) as server, Raw(server.address) as raw:
        caller = Caller(raw)
        assert caller.code("beginLoad", METHODS["beginLoad"].valid) == ""
        assert caller.code("createTopic", {"name": KEPT}) == ""
        yield caller


@pytest.mark.parametrize("method", METHODS)
def test_fields_past_their_limit_are_refused_and_nothing_changes(
    caller: Caller, method: str
) -> None:
    valid = METHODS[method].valid
    before = caller.state()
    told = {
        path: caller.code(method, with_field(valid, path, rule.past))
        for path, rule in METHODS[method].fields.items()
        if isinstance(rule, Limit)
    }

    assert told == {
        path: rule.code for path, rule in METHODS[method].fields.items() if isinstance(rule, Limit)
    }
    assert caller.state() == before


@pytest.mark.parametrize("method", METHODS)
def test_fields_at_their_limit_are_taken(caller: Caller, method: str) -> None:
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
