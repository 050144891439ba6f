"""Single messages of Cap'n Proto RPC, also such that no client library would send."""

from pathlib import Path
from random import Random
from struct import pack, unpack_from
from typing import Any

import capnp

from queueber.schema import wire

_FOLDER = Path(capnp.__file__).parent
rpc = capnp.load(str(_FOLDER / "rpc.capnp"), imports=[str(_FOLDER.parent)])

METHODS: dict[str, tuple[int, int, Any]] = {
    prefix + method.name: (interface.schema.node.id, number, interface.schema.methods[method.name])
    for prefix, interface in (
        ("", wire.Queue),
        ("", wire.Service),
        ("Topic.", wire.Topic),
        ("Subscription.", wire.Subscription),
    )
    for number, method in enumerate(interface.schema.node.interface.methods)
}
"""Each method's interface, number and schema. Those of the bootstrap object have no prefix."""

CONSUMER_SCHEMA = wire.Consumer.schema
CONSUMER = 7
"""What a subscriber calls the consumer that it gives to the server."""


def bootstrap(question: int = 0) -> bytes:
    message = rpc.Message.new_message()
    message.init("bootstrap").questionId = question
    return encoded(message)


def call(
    question: int,
    method: str,
    *,
    of: int = 0,
    to_yourself: bool = False,
    has_consumer: bool = True,
    **params: Any,
) -> bytes:
    """A call on what the question `of` was answered with: 0 for the bootstrap object, else a
    queue, a topic or a subscription that was asked for. A subscribe gives a consumer."""
    interface, number, known = METHODS[method]
    message = rpc.Message.new_message()
    made = message.init("call")
    made.questionId = question
    target = made.target.init("promisedAnswer")
    target.questionId = of
    if of:
        target.init("transform", 1)[0].getPointerField = 0
    made.interfaceId, made.methodId = interface, number
    content = made.params.content.as_struct(known.param_type)
    for name, value in params.items():
        setattr(content, name, value)
    if to_yourself:
        made.sendResultsTo.yourself = None
    if method != "Topic.subscribe" or not has_consumer:
        return encoded(message)
    made.params.init("capTable", 1)[0].senderHosted = CONSUMER
    return _with_capability(encoded(message))


def _with_capability(data: bytes) -> bytes:
    """The same call with capability 0 in the second pointer of its parameters.

    pycapnp sets capabilities only in a running event loop, and with an object behind them.
    """
    at = 8
    if data[:4] != bytes(4):
        raise ValueError("the message has several segments; use shorter parameters")
    # The root, of which the call is the first pointer; then its second, the parameters; then
    # their content.
    for pointer in (0, 1, 0):
        at = _struct_at(data, at)[pointer]
    slot = _struct_at(data, at)[1]
    return data[:slot] + pack("<II", 3, 0) + data[slot + 8 :]


def _struct_at(data: bytes, at: int) -> range:
    """Where the pointers are of the struct that a pointer leads to."""
    offset, data_words, pointers = unpack_from("<iHH", data, at)
    start = at + 8 + 8 * (offset >> 2) + 8 * int(data_words)
    return range(start, start + 8 * int(pointers), 8)


def finish(question: int) -> bytes:
    message = rpc.Message.new_message()
    message.init("finish").questionId = question
    return encoded(message)


def release(export: int, count: int) -> bytes:
    message = rpc.Message.new_message()
    made = message.init("release")
    made.id, made.referenceCount = export, count
    return encoded(message)


def encoded(message: Any) -> bytes:
    made: bytes = message.to_bytes()
    return made


def framed(*segments: bytes, declared: list[int] | None = None) -> bytes:
    """Segments with their table; `declared` are sizes in words, which may be false."""
    words = declared or [len(segment) // 8 for segment in segments]
    table = pack(f"<I{len(words)}I", len(words) - 1, *words)
    return table + bytes(-len(table) % 8) + b"".join(segments)


def struct_pointer(offset: int, data_words: int, pointers: int) -> bytes:
    return pack("<iHH", offset << 2, data_words, pointers)


def list_pointer(offset: int, element: int, count: int) -> bytes:
    return pack("<iI", (offset << 2) | 1, element | (count << 3))


def far_pointer(segment: int, word: int, *, double: bool = False) -> bytes:
    return pack("<II", (word << 3) | (double << 2) | 2, segment)


def nested(depth: int) -> bytes:
    """A message of deeply nested pointers."""
    words = [struct_pointer(0, 1, 1), pack("<HHI", 2, 0, 0)]
    words += [struct_pointer(0, 0, 1)] * depth
    return framed(b"".join(words))


def random_message(random: Random) -> bytes:
    """A message of the right form without a valid meaning."""
    message = rpc.Message.new_message()
    kind = random.choice(["bootstrap", "call", "return", "finish", "resolve", "release"])
    made = message.init(kind)
    number = random.choice([0, 1, 2, 7, 2**31, 2**32 - 1])
    if kind == "call":
        made.questionId = number
        if random.random() < 0.5:
            made.target.importedCap = random.choice([0, 1, 2**32 - 1])
        else:
            made.target.init("promisedAnswer").questionId = random.choice([0, 1, number])
        made.interfaceId = random.choice(
            [METHODS["add"][0], METHODS["queue"][0], METHODS["Topic.read"][0], 1]
        )
        made.methodId = random.choice([0, 1, 2, 7, 99, 65535])
        table = made.params.init("capTable", random.choice([0, 1, 5]))
        for entry in table:
            setattr(entry, random.choice(["senderHosted", "receiverHosted"]), number)
    elif kind == "return":
        made.answerId = number
        made.canceled = None
    elif kind == "resolve":
        made.promiseId = number
        made.init("exception").reason = "none"
    elif kind == "release":
        made.id, made.referenceCount = number, random.choice([0, 1, 2**32 - 1])
    else:
        made.questionId = number
    return encoded(message)
