"""Reads record batches of new messages, checks them, and makes the calls that publish them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from queueber.limits import MIB, TOPIC_PARTITIONS_MAX
from queueber.model import NewMessages
from queueber.tables.row_check import RowCheck, packed, read_attributes, read_keys, to_bytes

CALL_ROWS = 2000
CALL_BYTES = 4 * MIB
"""What one call has at most, unless a single message is larger."""

PAYLOAD_NAMES = ("payload", "value")
"""A DataFrame has one of these columns; `value` is what Kafka calls it."""


class Call(NamedTuple):
    """What one call publishes."""

    partition: int | None
    """None: that of each key."""
    messages: NewMessages
    rows: Sequence[int]
    """The numbers of the rows in the Spark partition."""


def read_messages(batch: pa.RecordBatch, first_row: int) -> Iterator[Call]:
    """The rows of a record batch as calls.

    The same rows in the same order always become the same calls, so a task that is repeated
    repeats its calls. `first_row` is the number of the first row in the Spark partition. If a row
    cannot be published, raises `InvalidArgument` with the row's number.
    """
    if not batch.num_rows:
        return
    if batch.num_rows > 1 and (batch.num_rows > CALL_ROWS or batch.nbytes > CALL_BYTES):
        half = batch.num_rows // 2
        yield from read_messages(batch.slice(0, half), first_row)
        yield from read_messages(batch.slice(half), first_row + half)
        return
    check = RowCheck(batch, first_row)
    (name,) = set(batch.schema.names) & set(PAYLOAD_NAMES)
    payloads = to_bytes(batch.column(name))
    check.nulls(name, payloads, "every message has a payload, which may be empty")
    messages = NewMessages(packed(payloads), read_keys(check), read_attributes(check))
    yield from _by_partition(messages, check, first_row)


def _by_partition(messages: NewMessages, check: RowCheck, first_row: int) -> Iterator[Call]:
    """A call for each partition that rows name, in the order in which they first do."""
    column = check.column("partition")
    if column is None:
        yield Call(None, messages, range(first_row, first_row + len(messages.payloads)))
        return
    check.range("partition", column, 0, TOPIC_PARTITIONS_MAX - 1)
    rows: dict[int | None, list[int]] = {}
    for row, partition in enumerate(column.to_pylist()):
        rows.setdefault(partition, []).append(row)
    for partition, chosen in rows.items():
        numbers = [first_row + row for row in chosen]
        yield Call(partition, _choose(messages, chosen), numbers)


def _choose(messages: NewMessages, rows: list[int]) -> NewMessages:
    if len(rows) == len(messages.payloads):
        return messages
    return NewMessages(
        [messages.payloads[row] for row in rows],
        [messages.keys[row] for row in rows] if messages.keys else (),
        [messages.attributes[row] for row in rows] if messages.attributes else (),
    )
