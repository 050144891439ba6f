"""The members of a fleet that publish messages and consume them; see `members.py`."""

import contextlib
import time
from collections.abc import Callable
from random import Random

import queueber
from faults.observed import ObservedQueue
from faults.observed_topic import ObservedTopic, publish_together
from faults.recorder import Recorder

MESSAGES, COPIES = "messages", "copies"
JOINED = "joined"
"""The queue that calls together add to; nobody polls it."""
PARTITIONS = 2
ORDERED, SHARED, SUBSCRIBERS = "ordered", "shared", "subscribers"
LEASE_SECONDS = 1.0
_PAUSE_SECONDS = 0.03


def create_topics(client: queueber.Client) -> None:
    client.create_topic(MESSAGES, partitions=PARTITIONS)
    client.create_topic(COPIES)
    client.create_queue(JOINED)
    topic = client.topic(MESSAGES)
    topic.create_group(ORDERED)
    for shared in (SHARED, SUBSCRIBERS):
        topic.create_group(shared, kind="shared", attempts_max=1000, backoff=[0.1])


def _for_ever(address: str, random: Random, call: Callable[[queueber.Client], None]) -> None:
    with queueber.connect(address, connect_timeout=60) as client:
        while True:
            with contextlib.suppress(queueber.OutcomeUnknown, queueber.Unavailable):
                call(client)
                time.sleep(random.uniform(0, 2 * _PAUSE_SECONDS))


def publish(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Publish, half of the calls as a producer, some of them together with other things."""
    number = epoch = sequence = 0

    def call(client: queueber.Client) -> None:
        nonlocal number, epoch, sequence
        number += 1
        if random.random() < 0.25:
            payload = f"{name} {number}".encode()
            publish_together(client, recorder, name, [MESSAGES, COPIES], JOINED, payload)
            return
        topic = ObservedTopic(client.topic(MESSAGES, must_exist=True), recorder, name)
        payloads = [f"{name} {number} {at}".encode() for at in range(random.randrange(1, 8))]
        partition = random.choice([None, *range(PARTITIONS)])
        if random.random() < 0.5:
            topic.publish(payloads, partition=partition)
            return
        sequence += 1
        try:
            topic.publish(payloads, partition=partition, producer=(name, epoch, sequence))
        except (queueber.OutcomeUnknown, queueber.Unavailable):
            # A producer that does not know the outcome of a call begins a new epoch.
            epoch, sequence = epoch + 1, 0
            raise

    _for_ever(address, random, call)


def follow(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Read on from where an ordered group is, and acknowledge."""

    def call(client: queueber.Client) -> None:
        topic = ObservedTopic(client.topic(MESSAGES, must_exist=True), recorder, name)
        partition = random.randrange(PARTITIONS)
        page = topic.read(partition, ORDERED, limit=random.randrange(1, 50), wait=0.3)
        if len(page) and random.random() < 0.8:
            topic.ack(ORDERED, partition, page.next_offset - random.choice([0, 0, 1]))

    _for_ever(address, random, call)


def share(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """A consumer of a group that shares messages."""

    def call(client: queueber.Client) -> None:
        topic = client.topic(MESSAGES, must_exist=True)
        group = ObservedQueue(topic.group(SHARED), recorder, name)
        lease = group.poll(random.randrange(1, 60), lease=LEASE_SECONDS, wait=0.5)
        some = lease.ids[: random.randrange(len(lease) + 1)]
        if not some:
            return
        match random.randrange(6):
            case 0:
                group.fail(some, lease.id, delay=0.1)
            case 1:
                group.release(some, lease.id)
            case _:
                group.remove(some, lease.id)

    _for_ever(address, random, call)


def subscribe(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Messages as the server pushes them."""

    def call(client: queueber.Client) -> None:
        found = client.topic(MESSAGES, must_exist=True)
        topic = ObservedTopic(found, recorder, name)
        with found.subscribe(
            group=SUBSCRIBERS, kind="shared", credits=20, lease=LEASE_SECONDS
        ) as messages:
            for _ in range(random.randrange(1, 30)):
                batch = messages.batch(1)
                for message in batch:
                    topic.delivered(message)
                    message.ack_soon()  # those of a batch are one call
                if not batch:
                    return

    _for_ever(address, random, call)
