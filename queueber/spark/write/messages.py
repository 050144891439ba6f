"""Writers of topics: tasks publish their rows in numbered calls, and a repeated task repeats them.

The producer of a task is its write and its partition: of a stream the id of the query, of a batch
the `write_id`. Its epoch is the number of the micro-batch, so once a later one has begun, tasks of
an earlier one that are still alive are refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource

from queueber import NewMessage, Topic
from queueber.client.arguments.new_messages import AnyMessages
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.model import LoadRef, NewMessages, Producer
from queueber.spark.topic_options import TopicWriteOptions
from queueber.spark.write.task import this_micro_batch, this_part
from queueber.tables.new_messages import Call, read_messages

Message = datasource.WriterCommitMessage


@dataclass
class Written(Message):
    """What a task reports to the driver."""

    rows: int


def publish_rows(
    options: TopicWriteOptions, write: LoadRef, partition: int, batches: Iterator[pa.RecordBatch]
) -> Written:
    """Publish the rows of a task. The server leaves out the calls that it has had before."""
    name = f"{write.name}/{partition}"
    rows = calls = 0
    with options.connected(must_exist=False) as topic:
        for batch in batches:
            for call in read_messages(batch, rows):
                calls += 1
                # A call waits for the one before: it may be one that an earlier attempt has made,
                # with other rows, and then nothing after it may be published.
                _publish(topic, call, Producer(name, write.epoch, calls))
            rows += batch.num_rows
    return Written(rows)


def _publish(topic: Topic, call: Call, producer: Producer) -> None:
    messages = _to_publish(call.messages)
    try:
        topic.publish(messages, partition=call.partition, producer=producer)
    except (InvalidArgument, ResourceExhausted) as error:
        first, last = call.rows[0], call.rows[-1]
        raise type(error)(f"rows {first} to {last} of their partition: {error}") from None


def _to_publish(messages: NewMessages) -> AnyMessages:
    if not messages.keys and not messages.attributes:
        return list(messages.payloads)
    count = len(messages.payloads)
    keys = messages.keys or [""] * count
    attributes = messages.attributes or [{}] * count
    return list(map(NewMessage, messages.payloads, keys, attributes))


class MessagesWriter(datasource.DataSourceArrowWriter):
    """Writes a DataFrame to a topic."""

    def __init__(self, options: TopicWriteOptions, name: str) -> None:
        self._options = options
        self._write = LoadRef(name)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        return publish_rows(self._options, self._write, this_part().partition, iterator)

    def commit(self, messages: list[Message | None]) -> None:
        """Nothing is left to do: what tasks have published is there."""

    def abort(self, messages: list[Message | None]) -> None:
        """What was published stays. The same write, repeated, publishes the rest."""


class MessagesStreamWriter(datasource.DataSourceStreamArrowWriter):
    """Writes each micro-batch to a topic."""

    def __init__(self, options: TopicWriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        return publish_rows(self._options, this_micro_batch(), this_part().partition, iterator)

    def commit(self, messages: list[Message | None], batchId: int) -> None:  # noqa: N803
        """Nothing is left to do: what tasks have published is there."""

    def abort(self, messages: list[Message | None], batchId: int) -> None:  # noqa: N803
        """What was published stays. The next attempt at the micro-batch publishes the rest."""
