"""The options of a read or write of a topic, read once on the driver. Errors name the option."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from queueber import Topic, limits
from queueber.client.arguments.topic_names import to_group_name, to_topic_name
from queueber.client.transport.identity import Token
from queueber.errors import InvalidArgument
from queueber.spark.options import (
    CONNECTION,
    SPLITS_DEFAULT,
    address_of,
    checked,
    choice,
    connected_client,
    given_options,
    number,
    refuse,
    tls_of,
    to_write_id,
    token_of,
)
from queueber.spark.places import EARLIEST, LATEST, Places, to_places
from queueber.tls import TlsOptions

COMMON = ("address", "topic", *CONNECTION)
BATCH_READ_ONLY = ("endingOffsets", "endingTimestamp", "push_filters")
STREAM_READ_ONLY = ("maxOffsetsPerTrigger", "group")
READ_ONLY = (
    "startingOffsets",
    "startingTimestamp",
    "failOnDataLoss",
    "splits",
    *BATCH_READ_ONLY,
    *STREAM_READ_ONLY,
)
WRITE_ONLY = ("write_id",)


@dataclass(frozen=True, slots=True)
class TopicOptions:
    address: str
    topic: str
    tls: TlsOptions | None = None
    token: Token | None = field(default=None, repr=False)

    @contextlib.contextmanager
    def connected(self, *, must_exist: bool = True) -> Iterator[Topic]:
        """The topic, on a connection that is closed at the end; each task has its own."""
        with connected_client(self.address, self.tls, self.token) as client:
            yield client.topic(self.topic, must_exist=must_exist)


@dataclass(frozen=True, slots=True)
class TopicReadOptions(TopicOptions):
    start: Places = field(default_factory=lambda: Places(EARLIEST))
    end: Places = field(default_factory=lambda: Places(LATEST))
    fails_on_loss: bool = True
    """Whether messages that were deleted before they were read are an error."""
    splits: int = SPLITS_DEFAULT
    """At most so many tasks, or one for each partition if there are more partitions."""
    push_filters: bool = False
    max_offsets: int | None = None
    """The most messages of one micro-batch."""
    group: str | None = None
    """The ordered group that acknowledges what a stream has read."""


@dataclass(frozen=True, slots=True)
class TopicWriteOptions(TopicOptions):
    write_id: str | None = None


def is_of_topic(options: Mapping[str, str]) -> bool:
    """Whether a read or write is one of a topic; of a queue otherwise."""
    names = {name.lower() for name in options}
    if {"topic", "queue"} <= names:
        raise InvalidArgument("option 'topic': there is 'queue' too; give one of the two")
    return "topic" in names


def check_topic_options(options: Mapping[str, str]) -> None:
    """Refuses unknown names, and what is wrong for every use of the source."""
    _common(options)


def _common(
    options: Mapping[str, str],
) -> tuple[dict[str, str], tuple[str, str, TlsOptions | None, Token | None]]:
    given = given_options(options, (*COMMON, *READ_ONLY, *WRITE_ONLY))
    topic = checked(given, "topic", to_topic_name) or ""
    return given, (address_of(given), topic, tls_of(given), token_of(given))


def topic_read_options(
    options: Mapping[str, str], *, is_streaming: bool = False
) -> TopicReadOptions:
    given, common = _common(options)
    refuse(given, WRITE_ONLY, "is for writing only")
    if is_streaming:
        refuse(given, BATCH_READ_ONLY, "is for batch reads only")
    else:
        refuse(given, STREAM_READ_ONLY, "is for streaming reads only")
    start = to_places(given, "startingOffsets", "startingTimestamp", EARLIEST)
    end = to_places(given, "endingOffsets", "endingTimestamp", LATEST)
    if not is_streaming and LATEST in start.all:
        raise InvalidArgument(
            "option 'startingOffsets': a batch that starts at the latest message has none"
        )
    if EARLIEST in end.all:
        raise InvalidArgument(
            "option 'endingOffsets': a batch that ends at the earliest message has none"
        )
    return TopicReadOptions(
        *common,
        start=start,
        end=end,
        fails_on_loss=choice(given, "failOnDataLoss", ("true", "false"), "true") == "true",
        splits=number(given, "splits", SPLITS_DEFAULT, limits.SPLIT_PARTS_MAX),
        push_filters=choice(given, "push_filters", ("true", "false"), "false") == "true",
        max_offsets=number(given, "maxOffsetsPerTrigger", None, 1 << 53),
        group=checked(given, "group", to_group_name),
    )


def topic_write_options(
    options: Mapping[str, str], *, is_streaming: bool = False
) -> TopicWriteOptions:
    given, common = _common(options)
    refuse(given, READ_ONLY, "is for reading only")
    if is_streaming:
        refuse(given, WRITE_ONLY, "is for batch writes only; a stream names its own writes")
    return TopicWriteOptions(*common, write_id=checked(given, "write_id", to_write_id))
