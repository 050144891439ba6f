"""What JSON may cost that is not what a route takes."""

import gc
import tracemalloc

import msgspec
import pytest

from queueber.gateway.bodies import decode_body
from queueber.gateway.problems import Problem
from queueber.gateway.queues.items import PollRequest
from queueber.gateway.routes import Route
from queueber.limits import MIB


async def nothing(_: object) -> None:
    pass


ROUTE = Route("POST", "/", nothing, "", "", body=PollRequest)
JSON = "application/json"


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    decoded = decode_body(ROUTE, JSON, b'{"items_max": 5.0}')
    assert decoded == msgspec.convert({"items_max": 5}, PollRequest)


def test_many_small_values_in_a_wrong_body_take_no_memory_of_their_own() -> None:
    body = b'{"items_max": 5.5, "more": [' + b"[]," * (4 * MIB // 3) + b"[]]}"
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="items_max") as caught:
            decode_body(ROUTE, JSON, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.status == 400
    assert peak < MIB
