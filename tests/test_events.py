"""The events of the log: every one is in the table, with its level and its fields."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

import queueber
from queueber.config import OPTIONS
from queueber.events import EVENTS, WHO, Event
from queueber.limits import MINUTE_MS
from queueber.model import (
    ForkAt,
    GroupKind,
    GroupSettings,
    ItemState,
    NewMessages,
    On,
    Position,
    Publication,
    QueueSettings,
    Schedule,
    Source,
    TopicConfig,
)
from queueber.service.shell import LINES_A_SECOND_MAX
from queueber.testing import running_server
from tests.support.service_rig import ServiceRig, on_service
from tests.test_architecture import ROOT, SOURCES, tree_of

LEVELS = {"debug", "info", "warning", "error", "critical"}
WITHOUT_EVENTS = "queueber/spark/"
"""Spark logs with Python's own logger, as its executors do."""
PAGES = {"operations.md", "workers.md"}

KNOWN = {
    "session.who": WHO,
    "self.who": WHO,
    "self._session.who": WHO,
    "self.session.who": WHO,
    "config.shown()": (),
    "self._last_failure": ("reason", "caller"),
    "{name: getattr(figures, name) for name in _LOGGED}": (
        "in_flight", "waiting", "done", "failed", "refused", "unknown",
    ),
}  # fmt: skip
"""What comes in by `**`. Other fields that do are looked at while the server runs, below."""


class Logged(NamedTuple):
    """A place in the code that logs."""

    where: str
    level: str
    name: ast.expr
    fields: set[str]
    is_complete: bool
    """Whether all fields can be read from the source."""


def is_logger(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.rpartition(".")[2] in {"_log", "log"} or text.startswith("get_logger(")


CALL_OF_A_LEVEL = re.compile(rf"\.({'|'.join(LEVELS)}|exception)\(")


def logged_in(source: Path) -> Iterator[Logged]:
    if not CALL_OF_A_LEVEL.search((ROOT / source).read_text()):
        return  # to parse all files takes seconds, whenever tests are collected
    for node in ast.walk(tree_of(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS | {"exception"}
            and is_logger(node.func.value)
        ):
            given = {each.arg for each in node.keywords if each.arg}
            spread = [ast.unparse(each.value) for each in node.keywords if each.arg is None]
            given |= {field for each in spread for field in KNOWN.get(each, ())}
            yield Logged(
                f"{source}:{node.lineno}",
                node.func.attr,
                node.args[0],
                given,
                all(each in KNOWN for each in spread),
            )


def all_logged() -> list[Logged]:
    sources = [each for each in SOURCES if not str(each).startswith(WITHOUT_EVENTS)]
    return [logged for source in sources for logged in logged_in(source)]


# --- what the source says -------------------------------------------------------------------------


@pytest.mark.parametrize("logged", all_logged(), ids=lambda each: each.where)
def test_event_that_is_logged_is_in_the_table_with_its_level_and_fields(logged: Logged) -> None:
    if not isinstance(logged.name, ast.Constant):
        return  # the name is an argument: see below
    event = EVENTS[str(logged.name.value)]

    assert logged.level in event.levels
    assert event.is_open or logged.fields <= {*event.fields, *event.others}
    if logged.is_complete and len(event.levels) == 1:
        assert set(event.fields) <= logged.fields


def takers() -> dict[str, int]:
    """Functions with a parameter `event`, and its place in a call; classes by their name."""
    found = {}
    for source in SOURCES:
        for node in ast.walk(tree_of(source)):
            owner = ""
            if isinstance(node, ast.ClassDef):
                owner = node.name
                fields = [
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                ]
                if "event" in fields:
                    found[owner] = fields.index("event")
                nodes = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                nodes = [node]  # type: ignore[list-item]
            else:
                continue
            for function in nodes:
                names = [each.arg for each in function.args.args]
                if "event" in names and function.name not in LEVELS:
                    name = owner if function.name == "__init__" else function.name
                    if name:
                        found[name] = names.index("event") - (names[0] == "self")
    return found


def given_names() -> list[tuple[str, ast.expr]]:
    """Every event that is given to one of them, and where."""
    taking, found = takers(), []
    for source in SOURCES:
        if not str(source).startswith(("queueber/service/", "queueber/worker/")):
            continue
        for node in ast.walk(tree_of(source)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).rpartition(".")[2]
            by_name = [each.value for each in node.keywords if each.arg == "event"]
            if by_name:
                found += [(f"{source}:{node.lineno}", each) for each in by_name]
            elif called in taking and len(node.args) > taking[called]:
                found.append((f"{source}:{node.lineno}", node.args[taking[called]]))
    return found


def test_name_that_is_handed_on_is_in_the_table() -> None:
    constants = {
        node.value: where
        for where, node in given_names()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert {name: where for name, where in constants.items() if name not in EVENTS} == {}


def test_every_event_of_the_table_is_logged_somewhere() -> None:
    named = {each.name.value for each in all_logged() if isinstance(each.name, ast.Constant)}
    named |= {node.value for _, node in given_names() if isinstance(node, ast.Constant)}

    assert set(EVENTS) - named == set()


def test_name_is_handed_on_only_by_those_that_take_it() -> None:
    """A logger gets a variable only in functions that are known to take the name of an event."""
    variable = {ast.unparse(e.name) for e in all_logged() if not isinstance(e.name, ast.Constant)}

    assert variable == {"event", "verb.event", "self._event"}


# --- what is logged while it runs -----------------------------------------------------------------


def check(line: dict[str, Any]) -> None:
    event = EVENTS[line["event"]]
    assert line["log_level"] in event.levels, line
    given = line.keys() - {"event", "log_level"}
    assert set(event.fields) <= given, line
    assert event.is_open or given <= {*event.fields, *event.others}, line


@on_service()
async def test_whatever_a_caller_does_is_logged_as_the_table_says(rig: ServiceRig) -> None:
    service, session = rig.service, rig.session
    session.name = "tester"
    with capture_logs() as lines:
        await service.queues.create_queue("q", QueueSettings(), session)
        await service.queues.open_queue("r", session, must_exist=False)
        await service.queues.configure_queue("q", QueueSettings(items_max=5), session)
        await rig.add(b"a", b"b")
        ids = (await rig.poll_now(1)).ids
        await service.items.cancel(rig.queue, ids)
        await service.items.reschedule(rig.queue, ids, 0)
        await service.items.purge(rig.queue, ItemState.READY, 10)
        await service.items.redrive(rig.queue, [], 10)
        await service.queues.pause(rig.queue, MINUTE_MS)
        await service.queues.resume(rig.queue)
        await service.schedules.put(Schedule("s", "@daily", "q"), session)
        await service.schedules.pause("s", session)
        await service.schedules.resume("s", session)
        await service.schedules.run_now("s", session)
        await service.schedules.remove("s", session)
        await service.queues.delete_queue("q", session)
        await service.topics.create_topic("t", TopicConfig(), session)
        topic = await service.topics.open_topic("t", session, must_exist=True)
        await service.topics.configure_topic("t", TopicConfig(), session)
        await service.groups.create_group(topic, "g", GroupSettings(), Position())
        await service.groups.create_group(topic, "s", GroupSettings(GroupKind.SHARED), Position())
        await service.publishing.publish(session, [Publication("t", NewMessages([b"m"]))])
        await service.publishing.publish(session, [Publication("new", NewMessages([b"m"]))])
        await service.groups.pause_group(topic, "g", MINUTE_MS)
        await service.groups.resume_group(topic, "g")
        await service.groups.reset_group(topic, "g", 0, Position())
        await service.topics.trim(topic, 0, Position())
        await service.topics.fork(topic, "fork", TopicConfig(partitions=0), ForkAt())
        await service.groups.delete_group(topic, "g")
        await service.routes.add_source(topic, Source("default", On.INSERT))
        await service.routes.drop_source(topic, "default", None)
        await service.schemas.set_schema(topic, b"{}", None, None)
        await service.topics.close(topic)
        await service.topics.delete_topic("fork", session)

    for line in lines:
        check(dict(line))
    assert {line["event"] for line in lines} >= {
        "queue_created", "queue_configured", "queue_deleted", "paused", "resumed", "cancelled",
        "rescheduled", "purged", "topic_created", "topic_configured", "topic_schema_set",
        "topic_closed",
        "schedule_stored", "schedule_paused", "schedule_resumed", "schedule_run",
        "schedule_removed", "topic_source_added", "topic_source_dropped",
        "topic_trimmed", "topic_forked", "topic_deleted", "group_created", "group_paused",
        "group_resumed", "group_reset", "group_deleted", "added", "polled",
    }  # fmt: skip


@on_service()
async def test_topics_by_the_million_do_not_fill_the_log(rig: ServiceRig) -> None:
    with capture_logs() as lines:
        for number in range(LINES_A_SECOND_MAX + 5):
            await rig.service.topics.create_topic(f"t{number}", TopicConfig(), rig.session)
        rig.clock.advance(1000)
        await rig.service.topics.create_topic("later", TopicConfig(), rig.session)

    levels = [line["log_level"] for line in lines if line["event"] == "topic_created"]
    assert levels == ["info"] * LINES_A_SECOND_MAX + ["debug"] * 5 + ["info"]


def test_worker_logs_as_the_table_says() -> None:
    def handle(item: queueber.WorkItem) -> None:
        if item.contents == b"bad":
            raise ValueError("no such picture")

    with running_server() as server, queueber.connect(server.address) as client:
        client.queue("logged").add([b"good", b"bad"])
        with capture_logs() as lines:
            worker = queueber.Worker(server.address, queue="logged", handler=handle)
            worker.run(until="empty")

    for line in lines:
        check(dict(line))
    events = {line["event"] for line in lines}
    assert {"worker_connecting", "worker_started", "handler_failed", "worker_ended"} <= events


def test_first_line_has_the_options() -> None:
    assert EVENTS["starting"].is_open
    assert not {option.name for option in OPTIONS} & set(EVENTS["starting"].fields)


# --- the pages ------------------------------------------------------------------------------------


def test_every_event_is_told() -> None:
    pages = "".join((ROOT / "docs" / page).read_text() for page in sorted(PAGES))

    assert [name for name in EVENTS if f"`{name}`" not in pages] == []


@pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))
def test_event_is_written_as_the_others(event: Event) -> None:
    assert event.name == event.name.lower()
    assert event.meaning.endswith(".")
    assert set(event.levels) <= LEVELS
    assert not set(event.fields) & set(event.others)
