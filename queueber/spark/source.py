"""The data source "queueber": chooses the reader or writer for the options.

Spark makes one on the driver for every `load` and `save`, so a wrong option is an error there,
before any task runs.
"""

from collections.abc import MutableMapping
from uuid import uuid4

from pyspark.sql import datasource
from pyspark.sql.types import StructType

from queueber.errors import FailedPrecondition, InvalidArgument
from queueber.spark import schemas
from queueber.spark.options import (
    ReadOptions,
    WriteOptions,
    check_options,
    read_options,
    write_options,
)
from queueber.spark.read.items import ItemsReader
from queueber.spark.read.message_stream import MessagesStreamReader
from queueber.spark.read.messages import MessagesReader
from queueber.spark.read.results import ResultsReader
from queueber.spark.read.stream import ResultsStreamReader
from queueber.spark.read.topic_ranges import describe
from queueber.spark.schemas import ITEM_COLUMNS, MESSAGE_COLUMNS, RESULT_COLUMNS, wanted_columns
from queueber.spark.topic_options import (
    TopicWriteOptions,
    check_topic_options,
    is_of_topic,
    topic_read_options,
    topic_write_options,
)
from queueber.spark.write.messages import MessagesStreamWriter, MessagesWriter
from queueber.spark.write.writers import BatchWriter, StreamWriter


class QueueberDataSource(datasource.DataSource):
    """`spark.read`, `readStream`, `write` and `writeStream` with `.format("queueber")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._is_of_topic = is_of_topic(options)
        check = check_topic_options if self._is_of_topic else check_options
        check(options)

    @classmethod
    def name(cls) -> str:
        return "queueber"

    def schema(self) -> StructType:
        """All columns of the table; a schema that the user gives says which of them are wanted."""
        return MESSAGE_COLUMNS if self._is_of_topic else _columns(read_options(self.options))

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        if self._is_of_topic:
            wanted = wanted_columns(schema, MESSAGE_COLUMNS, "messages")
            return MessagesReader(topic_read_options(self.options), wanted)
        options = read_options(self.options)
        wanted = wanted_columns(schema, _columns(options), options.table)
        if options.table == "items":
            return ItemsReader(options, wanted)
        return ResultsReader(options, wanted)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:  # noqa: N802  Spark's name
        if self._is_of_topic:
            wanted = wanted_columns(schema, MESSAGE_COLUMNS, "messages")
            return MessagesStreamReader(topic_read_options(self.options, is_streaming=True), wanted)
        options = read_options(self.options, is_streaming=True)
        return ResultsStreamReader(options, wanted_columns(schema, RESULT_COLUMNS, "results"))

    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        if self._is_of_topic:
            to = topic_write_options(self.options)
            _check_topic_write(to, schema, overwrite=overwrite)
            return MessagesWriter(to, to.write_id or str(uuid4()))
        options = write_options(self.options)
        _check_write(options, schema, overwrite=overwrite)
        return BatchWriter(options, options.write_id or str(uuid4()))

    def streamWriter(  # noqa: N802  Spark's name
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        if self._is_of_topic:
            to = topic_write_options(self.options, is_streaming=True)
            _check_topic_write(to, schema, overwrite=overwrite)
            return MessagesStreamWriter(to)
        options = write_options(self.options, is_streaming=True)
        _check_write(options, schema, overwrite=overwrite)
        return StreamWriter(options)


def _check_write(options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
    """Find mistakes here, on the driver, before any task runs."""
    if overwrite:
        raise InvalidArgument('a queue cannot be overwritten; use .mode("append")')
    schemas.check_written(schema)
    with options.connected(must_exist=False) as queue:
        try:
            queue.stats()
        except InvalidArgument as error:
            # Only the name can be invalid here.
            why = str(error).removeprefix("name: ")
            raise InvalidArgument(f"option 'queue': {why}") from None


def _check_topic_write(options: TopicWriteOptions, schema: StructType, *, overwrite: bool) -> None:
    if overwrite:
        raise InvalidArgument('a topic cannot be overwritten; use .mode("append")')
    schemas.check_written_messages(schema)
    with options.connected(must_exist=False) as topic:
        info = describe(topic)
    if info.is_closed:
        tail = info.partitions[0].next_offset
        raise FailedPrecondition(
            f"option 'topic': {info.name!r} is closed, and takes no more messages", tail=tail
        )


def _columns(options: ReadOptions) -> StructType:
    return ITEM_COLUMNS if options.table == "items" else RESULT_COLUMNS
