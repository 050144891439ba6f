"""Hostile bytes for the port of a server, made from a seed."""

from collections.abc import Callable
from itertools import accumulate
from random import Random
from struct import pack

from faults.hostile.messages import (
    METHODS,
    bootstrap,
    call,
    far_pointer,
    finish,
    framed,
    list_pointer,
    nested,
    random_message,
    struct_pointer,
)

_CALL_UNION = pack("<HHI", 2, 0, 0)
"""The first word of a message that says it is a call."""


def conversation(random: Random) -> bytes:
    """Messages that a normal client might send."""
    parts = [bootstrap(0)]
    for question in range(1, random.randint(2, 6)):
        kind = random.choice(["add", "poll", "stats", "queue", "removeMany", "peek", "topic"])
        if kind == "add":
            items = [random.randbytes(random.choice([0, 10, 300])) for _ in range(3)]
            packed = {"ends": pack("<3I", *accumulate(map(len, items))), "values": b"".join(items)}
            request: dict[str, object] = {"packed": packed, "idRuns": True}
            if random.random() < 0.5:
                request = {"contents": items}
            parts.append(call(question, "add", req=request))
        elif kind == "poll":
            request = {"numItems": 3, "noWait": True, "packed": random.random() < 0.5}
            parts.append(call(question, "poll", req=request))
        elif kind == "queue":
            parts.append(call(question, "queue", name="fuzzed"))
        elif kind == "topic":
            parts += _topic_calls(random, question)
        elif kind == "removeMany":
            ids = [bytes(16)] * random.randint(0, 3)
            parts.append(call(question, "removeMany", req={"ids": ids, "leases": ids}))
        else:
            parts.append(call(question, kind))
        if random.random() < 0.5:
            parts.append(finish(question))
    return b"".join(parts)


def _topic_calls(random: Random, topic: int) -> list[bytes]:
    """A topic is asked for with the number `topic`, and used."""
    group = random.choice(["", "ordered", "shared"])
    settings = {"kind": "shared" if group == "shared" else "ordered"}
    subscription = topic + 20
    return [
        call(topic, "topic", name="fuzzed"),
        call(topic + 10, "Topic.publish", of=topic, publication={"payloads": [b"x", b""]}),
        call(
            subscription,
            "Topic.subscribe",
            of=topic,
            req={"group": group, "settings": settings, "credits": random.choice([0, 1, 100])},
        ),
        call(topic + 30, "Subscription.grant", of=subscription, credits=2),
        call(topic + 40, "Topic.read", of=topic, req={"messagesMax": 3}),
        call(topic + 50, "Subscription.ack", of=subscription, offset=random.choice([0, 1, 2**63])),
    ]


def noise(random: Random) -> bytes:
    return random.randbytes(random.choice([1, 7, 8, 9, 64, 1000, 70_000]))


def truncated(random: Random) -> bytes:
    whole = conversation(random)
    return whole[: random.randrange(len(whole))]


def flipped(random: Random) -> bytes:
    """Flip a few bits."""
    data = bytearray(conversation(random))
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def spliced(random: Random) -> bytes:
    """Repeat words, leave words out, or replace them with critical values."""
    data = conversation(random)
    words = [data[at : at + 8] for at in range(0, len(data), 8)]
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(words))
        words[at : at + random.randint(0, 2)] = [
            random.choice([b"", bytes(8), b"\xff" * 8, words[at], words[at] * 2, far_pointer(0, 0)])
        ]
    return b"".join(words)


def oversized(random: Random) -> bytes:
    """Declare sizes of data that never comes."""
    words = random.choice([2**14, 2**20, 2**24, 2**24 + 1, 2**28, 2**29, 2**32 - 1])
    return bootstrap() + framed(bytes(64), declared=[words] * random.choice([1, 1, 2, 511]))


def many_segments(random: Random) -> bytes:
    count = random.choice([2, 3, 511, 512, 513, 60_000])
    if random.random() < 0.2:
        return pack("<II", 2**32 - 1, 1) + bytes(4096)
    return bootstrap() + framed(*[bytes(8)] * count)


def deeply_nested(random: Random) -> bytes:
    return bootstrap() + nested(random.choice([60, 64, 65, 1000, 100_000]))


def far_pointers(random: Random) -> bytes:
    """Pointers to other segments: to themselves, in circles, past the end, doubly."""
    kind = random.randrange(5)
    double = random.random() < 0.5
    if kind == 0:
        body = framed(far_pointer(0, 0, double=double))
    elif kind == 1:
        body = framed(far_pointer(1, 0, double=double), far_pointer(0, 0, double=double))
    elif kind == 2:
        body = framed(far_pointer(1, 2**29 - 1, double=double), bytes(8))
    elif kind == 3:
        body = framed(far_pointer(2**32 - 1, 0, double=double), bytes(8))
    else:
        landing = far_pointer(0, 0) + struct_pointer(0, 0, 0)
        body = framed(far_pointer(1, 0, double=True), landing)
    return bootstrap() + body


def wild_pointers(random: Random) -> bytes:
    """Structs and lists that end far outside the message, or cover all of it many times."""
    number = random.choice([-(2**29), -1, 0, 1, 2**20, 2**29 - 1])
    pointer = random.choice(
        [
            struct_pointer(number, 65535, 65535),
            list_pointer(number, random.randrange(8), random.choice([0, 1, 2**29 - 1])),
            pack("<II", 3, random.choice([0, 1, 2**32 - 1])),
        ]
    )
    words = [struct_pointer(0, 1, 1), _CALL_UNION, struct_pointer(0, 3, 3)]
    words += [bytes(24), pointer, pointer, pointer, bytes(64)]
    return bootstrap() + framed(b"".join(words))


def strange_calls(random: Random) -> bytes:
    """Messages that are valid one by one, and invalid together."""
    return bootstrap() + b"".join(random_message(random) for _ in range(random.randint(1, 20)))


def strange_params(random: Random) -> bytes:
    """Each method with the parameters of another."""
    told = bootstrap()
    for question in range(1, random.randint(2, 10)):
        method = random.choice(list(METHODS))
        content = random.choice([bytes(0), random.randbytes(64), b"\xff" * 64, bytes(64)])
        made = bytearray(call(question, method))
        told += bytes(made[:-8]) + (content[:8] or bytes(8))
    return told


KINDS: dict[str, Callable[[Random], bytes]] = {
    each.__name__.replace("_", " "): each
    for each in (
        noise,
        truncated,
        flipped,
        spliced,
        oversized,
        many_segments,
        deeply_nested,
        far_pointers,
        wild_pointers,
        strange_calls,
        strange_params,
    )
}
