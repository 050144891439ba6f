"""POST: append to a stream, close it, or both in one step.

An append is one call of the server, which checks everything that depends on the stream. What is
wrong with the request itself is refused only once the stream is known to be there and open, which
is asked for then.
"""

import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from queueber.errors import Aborted, FailedPrecondition, PermissionDenied
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams import answers, headers
from queueber.gateway.streams.appended import tell_appended
from queueber.gateway.streams.content import to_messages
from queueber.gateway.streams.extensions.keeping import key_of
from queueber.gateway.streams.extensions.schemas.appends import InForce, publish_checked
from queueber.gateway.streams.extensions.schemas.rules import Keyed
from queueber.gateway.streams.headers import ProducerHeaders
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.stream_info import (
    described,
    no_single_partition,
    tail_headers,
    type_of,
)
from queueber.model import Producer, Published, bare_type


@dataclass(slots=True)
class _Append:
    path: str
    content_type: str
    producer: ProducerHeaders | None
    closes: bool
    text_sequence: str


async def append(call: Call[Any, Any]) -> PlainAnswer:
    given, body = call.headers, call.raw or b""
    headers.check_encoding(given)
    asked = _Append(
        stream_path(call.names),
        headers.content_type(given) if body else "",
        headers.producer_of(given),
        headers.closes(given),
        headers.text_of(given, b"stream-seq") or "",
    )
    try:
        messages = _messages(asked, body)
    except Problem:
        await _look_first(call, asked)
        raise
    try:
        published = await _publish(call, asked, messages)
    except (Aborted, FailedPrecondition) as error:
        raise await _refusal(call, asked, error) from None
    if messages and not published.is_repeat:
        tell_appended(call, asked.path, published.end_offset)
    return _answer(asked, published, has_content=bool(messages))


def _messages(asked: _Append, body: bytes) -> list[bytes]:
    if not body:
        if not asked.closes:
            raise invalid("body: it is empty; send what to append, or Stream-Closed: true")
        return []
    if not asked.content_type:
        raise invalid("content-type: say what the body is; it must be the type of the stream")
    messages = to_messages(asked.content_type, body)
    if not messages:
        raise invalid("body: the array is empty; send what to append")
    return messages


async def _publish(call: Call[Any, Any], asked: _Append, messages: list[bytes]) -> Published:
    producer = None
    if asked.producer is not None:
        # The server's numbers begin with 1.
        given = asked.producer
        producer = Producer(given.id, given.epoch, given.number + 1)
    expected, number = headers.wanted_offset(call.headers), 0
    if expected is not None and expected.origin:
        info = await described(call.client, asked.path)
        if expected.origin != info.origin:
            problem = Problem(412, "FAILED_PRECONDITION", "if-match: it is of a deleted stream")
            raise answers.with_headers(problem, *tail_headers(info))
        number = info.number  # not another that is created meanwhile

    def publish(checked: Keyed, schema: InForce) -> Coroutine[Any, Any, Published]:
        return call.client.topic(asked.path, must_exist=True).publish(
            checked,
            partition=0,
            producer=producer,
            number_decides=producer is not None,
            expected_offset=None if expected is None else expected.offset,
            content_type=asked.content_type,
            text_sequence=asked.text_sequence,
            schema_version=schema.version,
            topic_number=schema.topic_number or number,
            close=asked.closes,
            one_partition=True,
        )

    return await publish_checked(call, asked.path, messages, key_of(call.headers), publish)


def _answer(asked: _Append, published: Published, *, has_content: bool) -> PlainAnswer:
    shown = [answers.next_offset(published.origin, published.end_offset)]
    if published.is_closed:
        shown.append(answers.CLOSED)
    if asked.producer is None:
        return answers.done(204, shown)
    shown.append((b"producer-epoch", b"%d" % asked.producer.epoch))
    shown.append((b"producer-seq", b"%d" % (published.last_number - 1)))
    is_new = has_content and not published.is_repeat
    return answers.done(200 if is_new else 204, shown)


# --- refusals -------------------------------------------------------------------------------------


async def _look_first(call: Call[Any, Any], asked: _Append) -> None:
    """Raise a `Problem` if the stream itself would not take an append of this type."""
    try:
        info = await described(call.client, asked.path)
    except PermissionDenied:
        return  # who may only append learns what is wrong with the request
    if info.is_closed:
        problem = Problem(409, "FAILED_PRECONDITION", f"stream: {asked.path} is closed")
        raise answers.with_headers(problem, *tail_headers(info))
    if asked.content_type and bare_type(asked.content_type) != bare_type(type_of(info)):
        raise Problem(
            409,
            "FAILED_PRECONDITION",
            f"content-type: it is {asked.content_type}, and that of the stream is {type_of(info)}",
        )


async def _refusal(
    call: Call[Any, Any], asked: _Append, error: Aborted | FailedPrecondition
) -> Problem:
    """What the server said, with the headers that callers go by."""
    problem, numbers = answers.problem_of_stream(error), error.numbers
    if isinstance(error, FailedPrecondition):
        if "partitions" in numbers:
            return no_single_partition(asked.path)
        if "closed" in numbers:
            answers.with_headers(problem, answers.CLOSED)
        if "tail" in numbers:
            with contextlib.suppress(PermissionDenied, Problem):  # who may only append
                info = await described(call.client, asked.path)
                answers.with_headers(problem, answers.next_offset(info.origin, numbers["tail"]))
        return problem
    producer = asked.producer
    assert producer is not None, "only producers have numbers"
    if "expected" not in numbers:
        problem.status = 403
        return answers.with_headers(problem, (b"producer-epoch", b"%d" % numbers["epoch"]))
    if producer.epoch > numbers.get("epoch", producer.epoch):
        return invalid(f"producer-seq: it is {producer.number}; the first of a new epoch must be 0")
    expected = numbers["expected"] - 1  # of the caller's numbers
    problem.numbers = {"expected": expected, "received": producer.number}
    problem.detail = (
        f"producer-seq: {producer.number} of {producer.id!r} leaves a gap; {expected} comes next"
    )
    return answers.with_headers(
        problem,
        (b"producer-expected-seq", b"%d" % expected),
        (b"producer-received-seq", b"%d" % producer.number),
    )
