"""The members of a fleet that get messages of ordered groups pushed; see `members.py`.

Two of each role take over from each other all the time.
"""

import contextlib
import time
from collections.abc import Callable
from random import Random

import queueber
from faults import records
from faults.death.topic_members import MESSAGES
from faults.history import TOPICS, printed
from faults.observed import ObservedQueue
from faults.observed_topic import ObservedTopic, told_message
from faults.recorder import Recorder

PUSHED, MOVERS = "pushed", "movers"
"""Ordered groups of the topic `messages`."""
BRIDGE, BRIDGED = "bridge", "bridged"
"""A group that adds the messages to a queue, which nobody polls."""
MOVED, STEPS = "moved", "steps"
"""A topic and a queue: each message that `movers` get is published to the one, and is the result of
an item of the other, together with its acknowledgement."""
_LEASE_SECONDS = 2.0
_CREDITS = 20
_EXPECTED = (
    queueber.OutcomeUnknown,
    queueber.Unavailable,
    queueber.Aborted,  # another one has taken over
    queueber.FailedPrecondition,  # a lease has run out
)


def create_ordered_groups(client: queueber.Client) -> None:
    """The topic of the messages must exist."""
    for queue in (BRIDGED, STEPS):
        client.create_queue(queue, attempts_max=1000)
    client.create_topic(MOVED)
    topic = client.topic(MESSAGES)
    topic.create_group(BRIDGE, kind="queue", queue=BRIDGED)
    for group in (PUSHED, MOVERS):
        topic.create_group(group)


def _for_ever(address: str, random: Random, call: Callable[[queueber.Client, int], None]) -> None:
    number = 0
    with queueber.connect(address, connect_timeout=60) as client:
        while True:
            number += 1
            with contextlib.suppress(*_EXPECTED):
                call(client, number)
            # The consumer that has taken over gets to work before it is taken over itself.
            time.sleep(random.uniform(0.1, 0.6))


def push(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Get the messages of a group in order, and acknowledge most of them."""

    def call(client: queueber.Client, number: int) -> None:
        found = client.topic(MESSAGES, must_exist=True)
        topic = ObservedTopic(found, recorder, name)
        recorded = f"{name} {number}"
        with recorder.call(name, "subscribe", TOPICS, group=PUSHED, subscription=recorded):
            subscription = found.subscribe(group=PUSHED, credits=_CREDITS)
        with subscription as messages:
            for _ in range(random.randrange(1, 40)):
                batch = messages.batch(1)
                for message in batch:
                    with recorder.call(
                        name, "pushed", TOPICS, topic=MESSAGES, partition=message.partition,
                        group=PUSHED, subscription=recorded,
                    ) as told:  # fmt: skip
                        told.answered(messages=[list(told_message(message))])
                if batch and random.random() < 0.8:
                    topic.ack(PUSHED, batch[-1].partition, batch[-1].offset + 1)

    _for_ever(address, random, call)


def move(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Publish each message elsewhere, complete an item with it, and acknowledge it, together."""

    def call(client: queueber.Client, _: int) -> None:
        steps = ObservedQueue(client.queue(STEPS), recorder, name)
        with client.topic(MESSAGES, must_exist=True).subscribe(
            group=MOVERS, credits=_CREDITS
        ) as messages:
            for _ in range(random.randrange(1, 40)):
                batch = messages.batch(1)
                if not batch:
                    continue
                steps.add([f"{name} {each.id.hex()}".encode() for each in batch])
                lease = steps.poll(len(batch), lease=_LEASE_SECONDS)
                if len(lease) < len(batch):
                    # A later call would acknowledge these, too, and not move them.
                    return
                _move(client, recorder, name, batch, lease)

    _for_ever(address, random, call)


def _move(
    client: queueber.Client,
    recorder: Recorder,
    name: str,
    batch: list[queueber.Received],
    lease: queueber.Lease,
) -> None:
    """Recorded as a call for each thing that it does; the rules then hold for each alone."""
    pairs = list(zip(batch, lease, strict=True))
    ends = {message.partition: message.offset + 1 for message in batch}
    with contextlib.ExitStack() as recorded:
        told = recorded.enter_context(
            recorder.call(
                name,
                "complete",
                STEPS,
                **records.under_lease([item.id for _, item in pairs], lease.id),
                results=[printed(message.payload) for message, _ in pairs],
            )
        )
        acks = [
            recorded.enter_context(
                recorder.call(
                    name, "ack", TOPICS, topic=MESSAGES, group=MOVERS, partition=partition,
                    offset=end,
                )
            )
            for partition, end in ends.items()
        ]  # fmt: skip
        with client.together() as step:
            for message, item in pairs:
                step.ack(message)
                step.complete(item, message.payload)
            step.publish(MOVED, [message.payload for message, _ in pairs])
        told.answered(done=[True] * len(pairs))
        for ack, end in zip(acks, ends.values(), strict=True):
            ack.answered(cursor=end)
