"""Every field of the methods of topics at its limit and past it, and calls that are wrong in other
ways: the error names the field and the limit, and what is stored does not change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faults.hostile import messages
from faults.hostile.raw import Raw
from queueber.testing import running_server
from tests.support.field_caller import (
    FieldCaller,
    code_of,
    fields_of,
    stored,
    stored_at_rest,
    with_field,
)
from tests.support.field_limits import (
    EXHAUSTED,
    FAILED,
    KEPT,
    MADE,
    METHODS,
    OPTIONS,
    U64,
    Limit,
    Method,
    Rule,
)
from tests.support.topic_field_limits import (
    ALSO,
    DELIVERED,
    GROUP_METHODS,
    LEASE,
    MESSAGE_BYTES,
    MESSAGES,
    NAMED,
    NOT_OF_GROUPS,
    ORDERED,
    RESULTS_METHODS,
    SHARED,
    TOPIC_METHODS,
)

pytestmark = pytest.mark.slow

Asking = Callable[[str, dict[str, Any]], Any]
"""Calls a method of some capability; returns its answer, or the text of the error."""


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_every_field_of_the_schema_has_its_limit_here(method: str) -> None:
    known = messages.METHODS[method][2]

    assert sorted(fields_of(known.param_type)) == sorted(TOPIC_METHODS[method].fields)


def test_every_method_of_topics_and_subscriptions_is_here() -> None:
    assert sorted(TOPIC_METHODS) == sorted(name for name in messages.METHODS if "." in name)


@dataclass(slots=True)
class Made:
    """A topic, and consumers of its groups that have had some messages."""

    caller: FieldCaller
    topic: int
    ordered: int
    shared: int
    lease: bytes

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        of = self.topic
        if method.startswith("Subscription."):
            of = self.shared if method == "Subscription.settle" else self.ordered
        return self.caller.ask(method, self._filled(params), of=of)

    def _filled(self, params: dict[str, Any]) -> dict[str, Any]:
        """With the lease that there is."""
        if params.get("req", {}).get("lease") == LEASE:
            return {**params, "req": {**params["req"], "lease": self.lease}}
        return params


@contextmanager
def made(caller: FieldCaller) -> Iterator[Made]:
    caller.tell("createTopic", {"name": MADE, "config": {"partitions": 2}})
    topic = caller.tell("topic", {"name": MADE})
    published = {"payloads": [bytes(MESSAGE_BYTES)] * MESSAGES, "partition": 0}
    caller.tell("Topic.publish", {"publication": published}, of=topic)
    asked: dict[str, Any] = {"credits": DELIVERED}
    ordered = caller.tell("Topic.subscribe", {"req": {**asked, "group": ORDERED}}, of=topic)
    asked |= {"group": SHARED, "settings": {"kind": "shared"}}
    shared = caller.tell("Topic.subscribe", {"req": asked}, of=topic)
    yield Made(caller, topic, ordered, shared, caller.next_lease())
    caller.let_go(topic, ordered, shared)
    for name in ("fork", "f" * 255, MADE):
        caller.tell("deleteTopic", {"name": name})


@pytest.fixture(scope="module")
def server_dir() -> Iterator[tuple[FieldCaller, Path]]:
    with running_server(*OPTIONS) as server:
        with Raw(server.address) as raw:
            caller = FieldCaller(raw)
            assert caller.code("createTopic", {"name": KEPT}) == ""
            yield caller, server.data_dir
        assert server.stop() == 0


Place = tuple[FieldCaller, Path]


def check_past(place: Place, ask: Asking, method: Method, name: str) -> None:
    """Each field past its limit is refused with what the limit is, and nothing changes."""
    limits = {path: rule for path, rule in method.fields.items() if isinstance(rule, Limit)}
    before = stored_at_rest(place[1])
    told = {
        path: ask(name, with_field(method.valid, path, rule.past)) for path, rule in limits.items()
    }

    assert {path: code_of(text) for path, text in told.items()} == {
        path: rule.code for path, rule in limits.items()
    }
    assert stored(place[1]) == before
    assert [text for path, text in told.items() if not names(path, text)] == []
    assert [text for path, text in told.items() if not tells(limits[path], text)] == []


def names(path: str, text: str) -> bool:
    """Whether an error names the field that it is about."""
    *_, last = path.removesuffix("[]").split(".")
    return last in text or any(each in text for each in NAMED.get(last, ()))


def tells(limit: Limit, text: str) -> bool:
    """Whether an error tells the limit that was passed."""
    at, past = limit.at, limit.past
    if isinstance(at, int) and isinstance(past, int) and past < at:
        return True  # too little, and the text says so
    if isinstance(at, int) and isinstance(past, int):
        # Some limits that are given in seconds are told in milliseconds.
        return any(str(each) in text for each in (at, past - 1)) or past == U64
    if isinstance(at, str | bytes) and isinstance(past, str | bytes):
        # The limit of attributes is about names and values together.
        return any(str(each) in text for each in (len(at), len(past) - 1, len(past)))
    return not isinstance(at, list) or limit.code != EXHAUSTED or str(len(past) - 1) in text


def expected(rule: Rule) -> tuple[object, str]:
    if isinstance(rule, Limit):
        return rule.at, rule.at_code
    return rule.greatest, rule.code


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_fields_past_their_limit_are_refused_and_nothing_changes(
    server_dir: Place, method: str
) -> None:
    with made(server_dir[0]) as topic:
        check_past(server_dir, topic.ask, TOPIC_METHODS[method], method)


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_fields_at_their_limit_are_taken(server_dir: Place, method: str) -> None:
    valid, fields = TOPIC_METHODS[method].valid, TOPIC_METHODS[method].fields
    told = {}
    for path, rule in fields.items():
        with made(server_dir[0]) as topic:
            told[path] = code_of(topic.ask(method, with_field(valid, path, expected(rule)[0])))

    assert told == {path: expected(rule)[1] for path, rule in fields.items()}


@pytest.mark.parametrize(("method", "params", "code", "word"), ALSO)
def test_call_that_is_wrong_is_refused_and_nothing_changes(
    server_dir: Place, method: str, params: dict[str, Any], code: str, word: str
) -> None:
    caller, data_dir = server_dir
    with made(caller) as topic:
        before = stored_at_rest(data_dir)
        told = topic.ask(method, params)
        after = stored(data_dir)

    assert (code_of(told), word in told) == (code, True), told
    assert after == before


# --- a shared group as a queue --------------------------------------------------------------------


@contextmanager
def made_group(caller: FieldCaller) -> Iterator[Asking]:
    with made(caller) as topic:
        group = caller.tell("Topic.group", {"name": SHARED}, of=topic.topic)
        yield lambda method, params: caller.ask(method, params, of=group)
        caller.let_go(group)


@pytest.mark.parametrize("method", GROUP_METHODS)
def test_group_holds_the_fields_of_a_queue_to_their_limits(server_dir: Place, method: str) -> None:
    known = GROUP_METHODS[method]
    with made_group(server_dir[0]) as ask:
        check_past(server_dir, ask, known, method)
        told = {
            path: code_of(ask(method, with_field(known.valid, path, expected(rule)[0])))
            for path, rule in known.fields.items()
        }

    assert told == {path: expected(rule)[1] for path, rule in known.fields.items()}


@pytest.mark.parametrize("method", NOT_OF_GROUPS)
def test_group_refuses_whatever_is_about_items(server_dir: Place, method: str) -> None:
    with made_group(server_dir[0]) as ask:
        before = stored_at_rest(server_dir[1])
        told = ask(method, METHODS[method].valid)
        after = stored(server_dir[1])

    assert (code_of(told), f"no {method!r}" in told) == (FAILED, True), told
    assert after == before


# --- the results of a queue as a topic ------------------------------------------------------------


@contextmanager
def made_results(caller: FieldCaller) -> Iterator[Asking]:
    caller.tell("createQueue", {"name": MADE})
    results = caller.tell("topic", {"name": f"queue/{MADE}/results"})
    assert caller.code("Topic.createGroup", {"name": "r"}, of=results) == ""
    yield lambda method, params: caller.ask(method, params, of=results)
    caller.let_go(results)
    assert caller.code("deleteQueue", {"name": MADE}) == ""


@pytest.mark.parametrize("method", RESULTS_METHODS)
def test_results_hold_fields_to_their_limits(server_dir: Place, method: str) -> None:
    known = RESULTS_METHODS[method]
    with made_results(server_dir[0]) as ask:
        check_past(server_dir, ask, known, method)
    told = {}
    for path, rule in known.fields.items():
        with made_results(server_dir[0]) as ask:
            told[path] = code_of(ask(method, with_field(known.valid, path, expected(rule)[0])))

    assert told == {path: expected(rule)[1] for path, rule in known.fields.items()}


@pytest.mark.parametrize(
    "method",
    [name for name in TOPIC_METHODS if name.startswith("Topic.") and name not in RESULTS_METHODS],
)
def test_results_refuse_whatever_would_change_them(server_dir: Place, method: str) -> None:
    with made_results(server_dir[0]) as ask:
        before = stored_at_rest(server_dir[1])
        told = ask(method, TOPIC_METHODS[method].valid)
        after = stored(server_dir[1])

    assert (code_of(told), repr(method.removeprefix("Topic.")) in told) == (FAILED, True), told
    assert after == before
