"""A topic of a real server that records every call, and the final state of topics."""

from collections.abc import Sequence
from typing import Any

import queueber
from faults import records
from faults.final_state import FinalState
from faults.history import TOPICS, printed
from faults.recorder import Recorder
from faults.topics.final import FinalPartition, FinalTopic, FinalTopics, Message
from queueber.model import ItemState, Published

Ack = tuple[str, str, int, int]
"""Topic, group, partition and offset."""


class ObservedTopic:
    """As `queueber.Topic`, for one client."""

    def __init__(self, topic: queueber.Topic, recorder: Recorder, client: str) -> None:
        self._topic = topic
        self._recorder = recorder
        self._client = client

    def _call(self, operation: str, **arguments: Any) -> Any:
        named = {"topic": self._topic.name} | arguments
        return self._recorder.call(self._client, operation, TOPICS, **named)

    def publish(
        self,
        payloads: Sequence[bytes],
        *,
        partition: int | None = None,
        producer: tuple[str, int, int] | None = None,
    ) -> Published:
        publication = told_publication(self._topic.name, payloads, partition, producer)
        with self._recorder.call(
            self._client, "publish", TOPICS, publications=[publication]
        ) as call:
            found = self._topic.publish(list(payloads), partition=partition, producer=producer)
            call.answered(published=[told_published(found)])
        return found

    def read(self, partition: int, group: str, *, limit: int, wait: float) -> queueber.MessagePage:
        with self._call(
            "read", partition=partition, start="group", value=0, moves=False, group=group
        ) as call:
            page = self._topic.read(partition, group=group, limit=limit, wait=wait)
            call.answered(
                first=page.first_kept,
                end=page.end_offset,
                next=page.next_offset,
                messages=[list(told_message(each)) for each in page],
            )
        return page

    def ack(self, group: str, partition: int, offset: int) -> int:
        with self._call("ack", group=group, partition=partition, offset=offset) as call:
            cursor = self._topic.ack(group, offset, partition=partition)
            call.answered(cursor=cursor)
        return cursor

    def delivered(self, message: queueber.Message) -> None:
        """Record a message of a subscription."""
        with self._call("delivered", partition=message.partition) as call:
            call.answered(messages=[list(told_message(message))])


def publish_together(
    client: queueber.Client,
    recorder: Recorder,
    name: str,
    topics: Sequence[str],
    queue: str,
    payload: bytes,
) -> None:
    """Publish to topics and add to a queue, all or nothing."""
    with recorder.call(
        name, "together", TOPICS, topics=list(topics), into=queue, contents=printed(payload),
        ack=[],
    ) as call:  # fmt: skip
        with client.together() as steps:
            for topic in topics:
                steps.publish(topic, [payload], partition=0)
            steps.add(queue, payload)
        done = steps.done
        call.answered(
            ids=records.hexes(done.added[queue]),
            published=[told_published(each) for each in done.published],
        )


def told_publication(
    topic: str,
    payloads: Sequence[bytes],
    partition: int | None,
    producer: tuple[str, int, int] | None,
) -> dict[str, Any]:
    return {
        "topic": topic,
        "contents": records.all_printed(payloads),
        "keys": [],
        "dedup_ids": [],
        "partition": partition,
        "producer": list(producer) if producer else None,
        "expected": None,
        "closes": False,
    }


def told_published(found: Published) -> dict[str, Any]:
    return {
        "partitions": list(found.partitions),
        "offsets": list(found.offsets),
        "ids": records.hexes(found.ids),
        "sequences": list(found.sequences),
        "duplicates": list(found.duplicates),
        "repeat": found.is_repeat,
    }


def told_message(message: queueber.Message) -> Message:
    return (
        message.offset,
        printed(message.payload),
        message.key,
        message.id.hex(),
        message.sequence,
        message.timestamp_ms,
    )


# --- at the end -----------------------------------------------------------------------------------


def read_final_topics(
    client: queueber.Client, topics: Sequence[str], cursors: Sequence[tuple[str, str]]
) -> FinalTopics:
    """All messages of topics, and the cursors of some ordered groups (topic and name)."""
    final = FinalTopics()
    for name in topics:
        topic = client.topic(name, must_exist=True)
        found = topic.describe().partitions
        final.topics[name] = FinalTopic(
            [
                FinalPartition(
                    each.first_offset,
                    each.next_offset,
                    [told_message(message) for message in topic.messages(partition)],
                )
                for partition, each in enumerate(found)
            ]
        )
    for name, group in cursors:
        info = client.topic(name, must_exist=True).describe_group(group)
        final.cursors |= {
            (name, group, partition): each for partition, each in enumerate(info.cursors)
        }
        final.untouched[name, group] = info.is_untouched
    return final


def read_final_group(group: queueber.Queue) -> FinalState:
    """What is left of a shared group that has had all messages."""
    return FinalState(
        {
            found.id.hex(): records.found_item(found, state)
            for state in ItemState
            for found in group.peek_all(state)
        }
    )
