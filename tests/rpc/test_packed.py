"""Packed columns between a server and a client that has nothing but the schema."""

import struct
from itertools import accumulate
from typing import Any

from queueber.ids import ids_up_to
from queueber.testing import running_server
from tests.rpc.test_server import poll_request, refusal, with_service


def packed(*values: bytes) -> dict[str, bytes]:
    ends = struct.pack(f"<{len(values)}I", *accumulate(map(len, values)))
    return {"ends": ends, "values": b"".join(values)}


def run(last: bytes, count: int) -> bytes:
    return last + count.to_bytes(4, "little")


def test_packed_items_are_those_that_the_other_forms_have() -> None:
    async def scenario(service: Any) -> None:
        added = (await service.add(req={"packed": packed(b"one", b"", b"three")})).resp
        ids = list(added.ids)
        assert (added.idRuns, ids) == (b"", ids_up_to(ids[-1], 3))
        more = (await service.add(req={"packed": packed(b"4", b"5"), "idRuns": True})).resp
        assert list(more.ids) == []
        last = more.idRuns[:16]
        assert more.idRuns == run(last, 2)
        ids += ids_up_to(last, 2)

        first = (await service.poll(req=poll_request(numItems=1))).resp
        assert [(each.id, each.contents) for each in first.items] == [(ids[0], b"one")]
        second = (await service.poll(req=poll_request(numItems=1, columns=True))).resp
        assert (list(second.ids), list(second.contents)) == (ids[1:2], [b""])
        third = (await service.poll(req=poll_request(columns=True, packed=True))).resp
        assert (list(third.ids), list(third.contents), list(third.items)) == ([], [], [])
        assert third.idRuns == run(ids[2], 1) + run(ids[4], 2)
        assert third.packed.to_dict() == packed(b"three", b"4", b"5")

        await service.release(req={"ids": ids[2:], "leases": [third.lease]})
        request = {"leaseValidityMs": 60_000, "counts": [2, 2, 2], "packed": True}
        many = (await service.pollMany(req=request)).resp
        assert (list(many.counts), list(many.ids), list(many.contents)) == ([2, 1, 0], [], [])
        assert many.idRuns == run(ids[2], 1) + run(ids[3], 1) + run(ids[4], 1)
        assert many.packed.to_dict() == packed(b"three", b"4", b"5")

    with running_server() as server:
        with_service(server, scenario)


def test_whole_leases_are_completed_with_packed_results() -> None:
    async def scenario(service: Any) -> None:
        ids = list((await service.add(req={"contents": [b"a", b"b", b"c"]})).resp.ids)
        polled = (await service.pollMany(req={"leaseValidityMs": 60_000, "counts": [2, 1]})).resp
        leases = list(polled.leases)

        both = service.complete(req={"ids": ids, "leases": leases[:1], "counts": [2]})
        assert (await refusal(both)).startswith("INVALID_ARGUMENT: counts: ids were given, too")
        twice = {"leases": leases, "counts": [2, 1], "results": [b""] * 3, "packed": packed(b"")}
        told = await refusal(service.complete(req=twice))
        assert told.startswith("INVALID_ARGUMENT: packed: results were given, too")
        few = {"leases": leases, "counts": [2, 1], "packed": packed(b"A", b"B")}
        told = await refusal(service.complete(req=few))
        assert told.startswith("INVALID_ARGUMENT: results: 2 for 3")

        request = {
            "leases": [leases[0], bytes(16), leases[1]],
            "counts": [2, 1, 1],
            "packed": packed(b"A", b"", b"nobody", b"C"),
        }
        assert list((await service.complete(req=request)).resp.completed) == [True, False, True]
        read = (await service.readResults(req={})).resp
        assert (list(read.ids), list(read.results)) == (ids, [b"A", b"", b"C"])

    with running_server() as server:
        with_service(server, scenario)


def test_packed_results_may_be_given_with_ids() -> None:
    async def scenario(service: Any) -> None:
        ids = list((await service.add(req={"contents": [b"a", b"b"]})).resp.ids)
        lease = (await service.poll(req=poll_request())).resp.lease
        request = {"ids": ids[::-1], "leases": [lease], "packed": packed(b"B", b"A")}

        assert list((await service.complete(req=request)).resp.completed) == [True, True]

        read = (await service.readResults(req={})).resp
        assert (list(read.ids), list(read.results)) == (ids[::-1], [b"B", b"A"])

    with running_server() as server:
        with_service(server, scenario)


def test_packed_contents_past_a_limit_are_refused_and_nothing_is_stored() -> None:
    async def scenario(service: Any) -> None:
        refusals = [
            ({"ends": b"123", "values": b""}, "INVALID_ARGUMENT: packed: the ends have 3 bytes"),
            ({"ends": bytes(8), "values": b"ab"}, "INVALID_ARGUMENT: packed: the ends of 2"),
            (packed(*[b""] * 10_001), "RESOURCE_EXHAUSTED: packed: the call has 10001"),
            (packed(b"a", b"b" * 101), "RESOURCE_EXHAUSTED: contents: an item has 101 bytes"),
        ]
        for contents, told in refusals:
            assert (await refusal(service.add(req={"packed": contents}))).startswith(told)
        both = {"contents": [b"a"], "packed": packed(b"b")}
        told = await refusal(service.add(req=both))
        assert told.startswith("INVALID_ARGUMENT: packed: contents were given, too")
        assert (await service.stats()).stats.addedTotal == 0

    with running_server("--item-bytes-max", "100") as server:
        with_service(server, scenario)
