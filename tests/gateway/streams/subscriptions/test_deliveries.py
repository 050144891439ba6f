"""Many webhooks that are due: a bounded number is under way, and none is lost."""

import queue
import threading

from tests.gateway.streams.subscriptions.conftest import Subscriber, eventually
from tests.support.webhooks import Received, running_receiver

SUBSCRIPTIONS = 40
UNDER_WAY = 32


def test_32_webhooks_are_under_way_and_others_wait_for_one_to_end(
    subscriber: Subscriber,
) -> None:
    lock, may_go_on = threading.Lock(), threading.Event()
    under_way = [0, 0]
    ids = [f"{subscriber.id}-{number}" for number in range(SUBSCRIPTIONS)]
    own: queue.Queue[str] = queue.Queue()

    def answer(got: Received) -> tuple[int, object]:
        if (woken := got.json["subscription_id"]) not in ids:
            return 200, {"done": True}  # of another test, whose receiver had this port
        own.put(woken)
        with lock:
            under_way[0] += 1
            under_way[1] = max(under_way)
        may_go_on.wait(20)
        with lock:
            under_way[0] -= 1
        return 200, {"done": True}

    with running_receiver(answer) as receiver:
        for subscriber.id in ids:
            assert subscriber.create(url=receiver.url, lease_ttl_ms=30_000).status == 201
        subscriber.put_stream("a", [1])
        eventually(own.qsize, lambda count: count >= UNDER_WAY)
        assert own.qsize() == UNDER_WAY
        may_go_on.set()
        woken = {own.get(timeout=20) for _ in range(SUBSCRIPTIONS)}

        assert (woken, under_way[1]) == (set(ids), UNDER_WAY)
        for subscriber.id in ids:
            eventually(
                lambda: [at[17:] for _, at in subscriber.links().values()], [f"{1:016d}"].__eq__
            )
            subscriber.ask("DELETE")
