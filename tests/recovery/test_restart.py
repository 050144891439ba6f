"""What a restart keeps: items, leases with their expiry, statistics."""

import time

import pytest

import queueber
from queueber.testing import running_server


@pytest.mark.recovery
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_items_leases_and_statistics_are_as_before(how: str) -> None:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            queue = client.queue("kept")
            ids = queue.add([b"leased", b"removed", b"ready"])
            queue.add(b"delayed", delay=1000)
            lease = queue.poll(2, lease=1000)
            assert lease.remove(ids[1]) == [True]
            client.create_queue("limited", items_max=3)
            before = [stats_without_age(stats) for stats in client.queues()]
        server.stop() if how == "stop" else server.kill()
        server.start()

        with queueber.connect(server.address) as client:
            queue = client.queue("kept")
            assert [stats_without_age(stats) for stats in client.queues()] == before
            assert queue.remove(ids[0], lease=lease.id) == [True]
            assert queue.poll(9).ids == [ids[2]]


def stats_without_age(stats: queueber.Stats) -> tuple[object, ...]:
    return (
        stats.name, stats.settings, stats.created_at_ms, stats.ready, stats.delayed,
        stats.leased, stats.leases, stats.contents_bytes, stats.added_total,
        stats.polled_total, stats.removed_total, stats.expired_total, stats.extended_total,
    )  # fmt: skip


@pytest.mark.recovery
def test_a_lease_keeps_its_expiry_through_a_restart() -> None:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            [item_id] = client.queue().add(b"work")
            leased_at = time.time()
            client.queue().poll(lease=2)
        server.kill()
        server.start()

        with queueber.connect(server.address) as client:
            again = client.queue().poll(wait=10)

    assert again.ids == [item_id]
    assert 1.9 <= time.time() - leased_at < 5
