"""Calls that do many things at once, on the wire."""

from typing import Any

from queueber.model import (
    FailOutcome,
    GroupAck,
    NewItems,
    NewMessages,
    Publication,
    QueueSteps,
    Together,
    TogetherDone,
)
from queueber.testing import running_server
from queueber.wire.together import read_together_done, write_together
from tests.rpc.test_server import open_service, poll_request, refusal, with_service
from tests.rpc.test_subscriptions import Consumer, subscribe
from tests.rpc.test_topics import payloads_of, publish, read_of

EARLIEST: dict[str, Any] = {"from": {"start": "earliest"}}


async def do(service: Any, **asked: Any) -> TogetherDone:
    request = service.together_request()
    write_together(request.init("req"), Together(**asked))
    return read_together_done((await request.send()).resp)


def test_everything_in_the_call_happens_or_nothing() -> None:
    async def scenario(service: Any) -> None:
        source, queue = service.topic("in").topic, service.queue("work").queue
        await publish(source, b"m0", b"m1")
        await source.createGroup("g", {}, {"start": "earliest"})
        await source.createGroup("s", {"kind": "shared"}, {"start": "earliest"})
        await queue.add(req={"contents": [b"a", b"b", b"c"]})
        polled = (await queue.poll(req=poll_request(columns=True))).resp
        shared = (await source.group("s").queue.poll(req=poll_request(columns=True))).resp
        one, two, _ = polled.ids
        steps = QueueSteps(
            "work",
            NewItems([b"d"]),
            completed=[one],
            completed_leases=[polled.lease],
            results=[b"done"],
            failed=[two],
            failed_leases=[polled.lease],
            errors=["it broke"],
            delays_ms=[0],
        )
        out = Publication("out", NewMessages([b"x", b"y"]))
        leased = GroupAck("in", "s", lease=shared.lease, offsets=[1])
        lost = GroupAck("in", "s", lease=shared.lease, offsets=[1, 9])

        told = await refusal(
            do(
                service,
                publications=[out],
                acks=[GroupAck("in", "g", offset=2), lost],
                queues=[steps],
            )
        )

        assert told.startswith("FAILED_PRECONDITION: offset 9 of partition 0 of topic 'in'")
        assert list((await service.listTopics("", "", 0)).names) == ["in"]
        stats = (await queue.stats()).stats
        assert (stats.ready, stats.inProgress, stats.completedTotal) == (0, 3, 0)
        assert list((await source.describeGroup("g")).group.cursors) == [0]

        done = await do(
            service,
            publications=[out],
            acks=[GroupAck("in", "g", offset=2), leased],
            queues=[steps],
        )

        assert [list(each.offsets) for each in done.published] == [[0, 1]]
        assert [len(each.ids) if each else 0 for each in done.added] == [1]
        assert done.failed == [[FailOutcome.RETRIED]]
        assert payloads_of(await read_of(service.topic("out").topic, EARLIEST)) == [b"x", b"y"]
        stats = (await queue.stats()).stats
        assert (stats.ready, stats.inProgress, stats.completedTotal) == (2, 1, 1)
        assert list((await source.describeGroup("g")).group.cursors) == [2]
        assert (await source.describeGroup("s")).group.lag == 1

    with running_server() as server:
        with_service(server, scenario)


def test_a_consumer_that_was_taken_over_from_cannot_acknowledge_in_any_way() -> None:
    with running_server() as server:

        async def scenario(service: Any) -> None:
            stream, other = await open_service(server.address)
            topic, elsewhere = service.topic("t").topic, other.topic("t").topic
            first, second = Consumer(), Consumer()
            await publish(topic, b"1")
            held = [await subscribe(elsewhere, first, group="g", credits=5)]
            await first.until_got(1)
            held.append(await subscribe(topic, second, group="g", consumer="new", credits=5))
            acks = [GroupAck("t", "g", offset=1)]
            publications = [Publication("out", NewMessages([b"twice"]))]

            for call in (
                do(other, publications=publications, acks=acks),
                elsewhere.ack("g", 0, 1),
            ):
                assert (await refusal(call)).startswith("ABORTED: consumer 'new' has partition 0")
            done = await do(service, publications=publications, acks=acks)

            assert [list(each.offsets) for each in done.published] == [[0]]
            stream.close()

        with_service(server, scenario)


def test_refusals_name_the_step() -> None:
    async def scenario(service: Any) -> None:
        topic = service.topic("t").topic
        await topic.createGroup("g", {}, {})
        await topic.createGroup("s", {"kind": "shared"}, {})
        twice = [QueueSteps("default", NewItems([b"a"]))] * 2
        steps: dict[str, dict[str, Any]] = {
            "INVALID_ARGUMENT: req: the call has no steps": {},
            "INVALID_ARGUMENT: queues: 'default' is there twice": {"queues": twice},
            "NOT_FOUND: there is no queue 'no'": {"queues": [QueueSteps("no", NewItems([b"a"]))]},
            "NOT_FOUND: there is no topic 'no'": {"acks": [GroupAck("no", "g")]},
            "NOT_FOUND: topic 't' has no group 'no'": {"acks": [GroupAck("t", "no")]},
            "INVALID_ARGUMENT: partition is 1": {"acks": [GroupAck("t", "g", 1)]},
            "OUT_OF_RANGE: offset is 1": {"acks": [GroupAck("t", "g", offset=1)]},
            "INVALID_ARGUMENT: lease: group 'g' has none": {
                "acks": [GroupAck("t", "g", lease=bytes(16))]
            },
            "INVALID_ARGUMENT: lease: one has 0 bytes": {"acks": [GroupAck("t", "s")]},
            "INVALID_ARGUMENT: offsets: there are none": {
                "acks": [GroupAck("t", "s", lease=bytes(16))]
            },
            "INVALID_ARGUMENT: complete.leases: 0 for 1": {
                "queues": [QueueSteps("default", completed=[bytes(16)], results=[b""])]
            },
            "INVALID_ARGUMENT: topic: 'queue/a' is reserved": {
                "publications": [Publication("queue/a", NewMessages([b"x"]))]
            },
            "INVALID_ARGUMENT: payloads: there are none": {
                "publications": [Publication("t", NewMessages([]))]
            },
        }
        for told, asked in steps.items():
            assert (await refusal(do(service, **asked))).startswith(told), told
        assert (await service.stats()).stats.ready == 0
        assert list((await service.listTopics("", "", 0)).names) == ["t"]

    with running_server() as server:
        with_service(server, scenario)
