"""The methods of loads on the wire, with nothing of our client between."""

import asyncio
from dataclasses import fields
from typing import Any

from queueber.model import PartRef, Rows
from queueber.testing import running_server
from queueber.wire.loads import read_load, write_part
from tests.rpc.test_server import poll_request, refusal, with_service
from tests.support.loading import built_part

REF = {"name": "nightly", "epoch": 2}
PART = {"partition": 4, "attempt": "first"}


async def stage(service: Any, load: Any, rows: Rows) -> None:
    part, files = built_part(read_load(load), PartRef(4, "first"), rows)
    for name, held in files.items():
        for at in (0, 100):
            request = {"load": REF, "part": PART, "file": name, "offset": at}
            data = held[:100] if at == 0 else held[100:]
            await service.stageFile(req={**request, "data": data})
    request = service.finishPart_request()
    body = request.init("req")
    body.load = REF
    write_part(body, part)
    await request.send()


def test_every_method_of_loads_on_one_connection() -> None:
    async def scenario(service: Any) -> None:
        begun = (await service.beginLoad(req={**REF, "batch": "b", "timeoutMs": 60_000})).load
        assert (str(begun.state), begun.epoch, len(begun.idHead)) == ("staging", 2, 9)
        assert begun.expiresAtMs - begun.startedAtMs == 60_000
        await stage(service, begun, Rows([b"a", b"b"]))
        (listed,) = (await service.listLoads()).loads
        assert (listed.name, listed.rows) == ("nightly", 2)

        commit = {"load": REF, "parts": [PART]}
        committed = (await service.commitLoad(req=commit)).load
        again = (await service.commitLoad(req=commit)).load

        assert (str(committed.state), committed.rows, committed.duplicates) == ("committed", 2, 0)
        assert read_load(again) == read_load(committed)
        polled = (await service.poll(req=poll_request(columns=True))).resp
        assert list(polled.contents) == [b"a", b"b"]
        assert [each[-7:] for each in polled.ids] == [
            b"\0\0\4" + bytes(4),
            b"\0\0\4\0\0\0\1",
        ]
        assert len((await service.listLoads()).loads) == 0
        assert not (await service.abortLoad(load=REF)).aborted
        await service.beginLoad(req={"name": "other"})
        assert (await service.abortLoad(load={"name": "other"})).aborted

    with running_server() as server:
        with_service(server, scenario)


def test_refusals_have_a_code_and_name_the_field() -> None:
    async def scenario(service: Any) -> None:
        await service.beginLoad(req=REF)
        stage = {"load": REF, "part": PART, "file": "a.sst", "offset": 0, "data": b"x"}
        late = {"contents": [b"x"], "origin": {"load": {"name": "gone"}, "partition": 0, "row": 0}}
        calls = {
            "INVALID_ARGUMENT: load: it is empty": service.beginLoad(req={}),
            "INVALID_ARGUMENT: file: 'x' is no name": service.stageFile(req={**stage, "file": "x"}),
            "INVALID_ARGUMENT: partition: 4294967295 is too high": service.stageFile(
                req={**stage, "part": {"partition": 2**32 - 1, "attempt": "a"}}
            ),
            "INVALID_ARGUMENT: levels: 0; give 10": service.finishPart(
                req={"load": REF, "part": PART}
            ),
            "INVALID_ARGUMENT: parts: attempt 'first' at partition 4 was not": service.commitLoad(
                req={"load": REF, "parts": [PART]}
            ),
            "NOT_FOUND: load: 'gone' is not under way": service.commitLoad(
                req={"load": {"name": "gone"}}
            ),
            "ABORTED: load: 'nightly' is in epoch 2": service.beginLoad(req={"name": "nightly"}),
            "NOT_FOUND: load: 'gone' is not under way in": service.add(req=late),
        }
        for told, call in calls.items():
            assert (await refusal(call)).startswith(told)
        (load,) = (await service.listLoads()).loads
        assert (load.rows, (await service.stats()).stats.ready) == (0, 0)

    with running_server() as server:
        with_service(server, scenario)


def test_origin_of_an_add_is_in_its_ids() -> None:
    async def scenario(service: Any) -> None:
        await service.beginLoad(req=REF)
        origin = {"load": REF, "partition": 1, "row": 2}

        ids = (await service.add(req={"contents": [b"a", b"b"], "origin": origin})).resp.ids

        assert [each[-7:].hex() for each in ids] == ["00000100000002", "00000100000003"]
        assert {each[6] >> 4 for each in ids} == {8}

    with running_server() as server:
        with_service(server, scenario)


def test_commit_goes_on_when_the_connection_that_asked_has_gone() -> None:
    with running_server() as server:

        async def ask(service: Any) -> None:
            begun = (await service.beginLoad(req=REF)).load
            await stage(service, begun, Rows([b"x"] * 1000))
            call = service.commitLoad(req={"load": REF, "parts": [PART]})
            del call  # dropping a call cancels it
            await asyncio.sleep(0)

        async def look(service: Any) -> None:
            committed = (await service.commitLoad(req={"load": REF, "parts": [PART]})).load
            assert committed.rows == (await service.stats()).stats.ready == 1000

        with_service(server, ask)
        with_service(server, look)


def test_every_field_of_a_load_reaches_the_other_side() -> None:
    async def scenario(service: Any) -> None:
        load = read_load((await service.beginLoad(req={**REF, "batch": "b"})).load)
        empty = {f.name for f in fields(load) if not getattr(load, f.name)}
        assert empty == {"rows", "duplicates"}

    with running_server() as server:
        with_service(server, scenario)
