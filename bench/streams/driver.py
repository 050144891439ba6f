"""The generator: executes orders for a server, whichever it is."""

import os
from collections.abc import Callable
from itertools import count

from bench.peers.order import Order, Tally
from bench.peers.peer import Program
from bench.streams.callers import run_callers
from bench.streams.catch_up import read_once, run_readers
from bench.streams.fan_out import FanOut
from bench.streams.requests import (
    BYTES,
    JSON,
    TEXT,
    appends,
    ask,
    creations,
    json_batch,
    request,
    stream_path,
)

KINDS = {"bytes": BYTES, "json": JSON, "text": TEXT}


class StreamDriver:
    """Its operations:

    - `create bytes`, `create json`, `create text`, `delete`: one stream, or as many as the count.
    - `append`: callers append a message each; they share the one stream, or have `count` streams.
      With several items, it is a JSON array of them.
    - `fill`: append `count` times, one after the other.
    - `create many`: callers create streams, each call another one.
    - `read`: as many readers as callers read the stream from its start; the items are bytes, and
      the count says how many there are at least.
    - `fan-out`: readers get each message by server-sent events; see `FanOut`.
    """

    def __init__(self, peer: Program, address: str) -> None:
        self._port = int(address.rpartition(":")[2])
        self._created = count()

    def run(self, order: Order) -> Tally:
        work, _, kind = order.work.partition(" ")
        tally = Tally()
        if order.work == "create many":
            self._create_many(order, tally)
        elif work == "create":
            self._each_stream(order, lambda path: request("PUT", path, kind=KINDS[kind]))
        else:
            {
                "delete": self._delete,
                "append": self._append,
                "fill": self._fill,
                "read": self._read,
                "fan-out": self._fan_out,
            }[order.work](order, tally)
        return tally

    def _each_stream(self, order: Order, made: Callable[[str], bytes]) -> None:
        for name in _names(order):
            ask(self._port, made(stream_path(name)))

    def _delete(self, order: Order, tally: Tally) -> None:
        self._each_stream(order, lambda path: request("DELETE", path))

    def _append(self, order: Order, tally: Tally) -> None:
        names = _names(order)
        items = order.items if order.items > 1 else 0
        calls = [
            appends(names[number % len(names)], order.content_bytes, items)
            for number in range(order.callers)
        ]
        run_callers(self._port, calls, order.seconds, order.items, tally)

    def _fill(self, order: Order, tally: Tally) -> None:
        size, path = order.content_bytes, stream_path(order.name)
        for _ in range(order.count):
            body = json_batch(size, order.items) if order.items > 1 else os.urandom(size)
            kind = JSON if order.items > 1 else BYTES
            ask(self._port, request("POST", path, body, kind=kind))

    def _create_many(self, order: Order, tally: Tally) -> None:
        calls = [
            creations(f"{order.name}/{next(self._created)}", BYTES) for _ in range(order.callers)
        ]
        run_callers(self._port, calls, order.seconds, 1, tally)

    def _read(self, order: Order, tally: Tally) -> None:
        done, _ = read_once(self._port, order.name)
        if done < order.count:
            raise RuntimeError(f"{order.name} has {done} bytes; {order.count} were appended")
        run_readers(self._port, order.name, order.callers, order.seconds, tally)

    def _fan_out(self, order: Order, tally: Tally) -> None:
        FanOut(self._port, order, tally).run()


def _names(order: Order) -> list[str]:
    return [f"{order.name}/{number}" for number in range(order.count)] or [order.name]
