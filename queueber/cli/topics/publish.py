"""`queueber topic publish`: messages from arguments, or from standard input."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from io import BufferedReader
from itertools import chain, count
from typing import Any, cast

import click

from queueber import NewMessage, Topic, TopicProducer
from queueber.cli.adding.sources import split_stream
from queueber.cli.flags import check_exclusive, pairs_flag, whole_number
from queueber.cli.output import counted, echo_json
from queueber.cli.target import Target, server_flags
from queueber.errors import InvalidArgument
from queueber.limits import MIB
from queueber.model import Published

_CALL_MESSAGES_MAX = 1000
_CALL_BYTES_MAX = MIB


@click.command()
@click.argument("name")
@click.argument("payloads", nargs=-1)
@click.option("--lines", is_flag=True, help="Each line of standard input is a message.")
@click.option("--null", is_flag=True, help="As --lines, but messages end with a NUL byte.")
@click.option("--jsonl", is_flag=True, help="Each line of standard input is a JSON object.")
@click.option("--key", default="", help="Key of the messages; those of one key stay in order.")
@click.option(
    "--key-separator",
    metavar="TEXT",
    help="Of each line the key, then this text, then the payload.",
)
@pairs_flag("--attribute", "attributes", help="Metadata of each message.")
@click.option("--partition", type=whole_number, help="Partition.  [default: that of the key]")
@click.option("--dedup-id", default="", help="Of a single message: publish it once.")
@click.option(
    "--expected-offset", type=whole_number, help="Fail unless the first message gets this offset."
)
@click.option("--producer", metavar="ID", help="Makes the command safe to repeat; see above.")
@click.option(
    "--epoch",
    type=whole_number,
    help="Of the producer; a higher one starts from scratch. [default: 1]",
)
@click.option("--close", "closes", is_flag=True, help="Close the topic with the last message.")
@click.option("--must-exist", is_flag=True, help="Fail if there is no such topic.")
@click.option("--quiet", is_flag=True, help="Print how many messages were published only.")
@server_flags
def publish(target: Target, name: str, quiet: bool, **given: Any) -> None:
    """Publish messages to a topic, and print where they are.

    \b
    Examples:
      queueber topic publish orders 'order 17' 'order 18' --key customer-3
      tail -f access.log | queueber topic publish access --lines --quiet
      queueber topic publish prices --lines --key-separator : < prices.txt
      echo '{"payload": "order 17", "key": "customer-3"}' | queueber topic publish orders --jsonl
      queueber topic publish prices --lines --quiet --producer night-17 < prices.txt
      queueber topic publish upload-17 --close

    Each argument is a message. Lines of standard input are sent as they come, up to 1000 in a call;
    each call publishes all its messages or none. A topic that does not exist is created, unless you
    give --must-exist.

    With --jsonl each line has "payload" (text) or "payloadBase64", and may have "key", "attributes"
    and "dedupId"; lines of 'topic read --json' work, too.

    With --producer you can repeat the command after a crash, with the same input and flags: what
    was published is not published again. Calls are numbered, and hold 1000 messages each, however
    slowly these come. For different input choose another producer, or a higher --epoch, which also
    stops runs of a lower one. The server forgets a producer after 7 days without a publish.

    Prints PARTITION/OFFSET of each message; with --json {"partition": 0, "offset": 17, "id":
    "...", "sequence": 4711}, or with --quiet {"published": 2}.
    """
    _check(given)
    published = before = 0
    with target.connect() as client:
        topic = client.topic(name, must_exist=target.must_exist)
        bytes_max = client.server().item_bytes_max
        for messages, answer in _publish_all(topic, _batches(given, bytes_max), given):
            before += messages if answer.is_repeat else 0
            published += 0 if answer.is_repeat else messages
            if not quiet:
                _echo(target, answer)
    if quiet:
        told = {"published": published} | ({"publishedBefore": before} if before else {})
        target.echo(told, str(published))
    if before and not (quiet and target.use_json):
        told_before = counted(before, "message")
        click.echo(f"Not published again: {told_before} of an earlier run.", err=True)


def _check(given: dict[str, Any]) -> None:
    check_exclusive(lines=given["lines"], null=given["null"], jsonl=given["jsonl"])
    is_stream = given["lines"] or given["null"] or given["jsonl"]
    if given["payloads"] and is_stream:
        raise InvalidArgument("give messages as arguments or on standard input, not both")
    if not given["payloads"] and not is_stream and not given["closes"]:
        raise InvalidArgument("there is nothing to publish; give messages, --lines or --jsonl")
    if given["dedup_id"] and len(given["payloads"]) != 1:
        raise InvalidArgument("--dedup-id is for a single message")
    if given["epoch"] is not None and given["producer"] is None:
        raise InvalidArgument("--epoch belongs to a producer; give --producer, too")
    if given["key"] and given["key_separator"]:
        raise InvalidArgument("--key and --key-separator do not go together; give one of them")


def _publish_all(
    topic: Topic, batches: Iterator[list[NewMessage]], given: dict[str, Any]
) -> Iterator[tuple[int, Published]]:
    """The number of messages of each call, and its answer."""
    to: Topic | TopicProducer = topic
    if given["producer"] is not None:
        to = topic.producer(given["producer"], 1 if given["epoch"] is None else given["epoch"])
    expected = given["expected_offset"]
    batch = next(batches, [])
    while batch or given["closes"]:
        after = next(batches, []) if given["closes"] else []
        closes = given["closes"] and not after
        answer = to.publish(
            batch, partition=given["partition"], expected_offset=expected, close=closes
        )
        yield len(batch), answer
        if closes:
            return
        expected = None if expected is None else expected + len(batch)
        batch = after or next(batches, [])


def _batches(given: dict[str, Any], bytes_max: int) -> Iterator[list[NewMessage]]:
    key, attributes = given["key"], given["attributes"]
    if given["payloads"]:
        made = [
            NewMessage(os.fsencode(each), key, attributes, given["dedup_id"])
            for each in given["payloads"]
        ]
        yield from _cut(made)
    elif given["lines"] or given["null"] or given["jsonl"]:
        arrived = _arrived(given, bytes_max)
        # A producer must form the same calls of the same input, however fast it arrives.
        for messages in [chain.from_iterable(arrived)] if given["producer"] else arrived:
            yield from _cut(messages)


def _arrived(given: dict[str, Any], bytes_max: int) -> Iterator[Iterable[NewMessage]]:
    """Messages of standard input, as many as have come at a time."""
    key, attributes = given["key"], given["attributes"]
    end = b"\0" if given["null"] else b"\n"
    numbers = count(1)
    separator = (given["key_separator"] or "").encode()
    stream = cast("BufferedReader", sys.stdin.buffer)
    for lines in split_stream(stream, end, 2 * bytes_max):
        if given["jsonl"]:
            yield (_of_json(each, next(numbers), key, attributes) for each in lines)
        else:
            yield (_of_line(each, separator, key, attributes) for each in lines)


def _of_line(line: bytes, separator: bytes, key: str, attributes: dict[str, str]) -> NewMessage:
    if not separator:
        return NewMessage(line, key, attributes)
    own, found, payload = line.partition(separator)
    if not found:
        raise InvalidArgument(f"--key-separator: {line[:80]!r} does not contain it")
    return NewMessage(payload, own.decode(errors="replace"), attributes)


def _of_json(line: bytes, number: int, key: str, attributes: dict[str, str]) -> NewMessage:
    import base64

    try:
        read = json.loads(line)
        payload = (
            base64.b64decode(read["payloadBase64"], validate=True)
            if read.get("payload") is None
            else read["payload"].encode()
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        raise InvalidArgument(
            f'line {number} is not a JSON object with "payload" or "payloadBase64"'
        ) from None
    return NewMessage(
        payload,
        read.get("key") or key,
        read.get("attributes") or attributes,
        read.get("dedupId") or "",
    )


def _cut(messages: Iterable[NewMessage]) -> Iterator[list[NewMessage]]:
    """Lists that fit into one call."""
    batch: list[NewMessage] = []
    size = 0
    for message in messages:
        size += len(message.payload)
        if batch and (len(batch) >= _CALL_MESSAGES_MAX or size > _CALL_BYTES_MAX):
            yield batch
            batch, size = [], len(message.payload)
        batch.append(message)
    if batch:
        yield batch


def _echo(target: Target, answer: Published) -> None:
    rows = zip(answer.partitions, answer.offsets, answer.ids, answer.sequences, strict=True)
    duplicates = answer.duplicates or [answer.is_repeat] * len(answer.offsets)
    for (partition, offset, id, sequence), duplicate in zip(rows, duplicates, strict=True):
        if target.use_json:
            found = {"partition": partition, "offset": offset, "id": id.hex(), "sequence": sequence}
            echo_json(found | ({"duplicate": True} if duplicate else {}))
        else:
            click.echo(f"{partition}/{offset}{'  published before' if duplicate else ''}")
