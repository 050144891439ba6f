"""Consumers of one group, while the gateway and the server are killed again and again."""

import contextlib
import http.client
import json
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import queueber
from queueber.testing import running_server
from tests.support.http import running_gateway

MESSAGES = 10_000
LEASE_SECONDS = 4.0
TOPIC, GROUP = "app.t", "g"


class Consumer:
    """Consumes and acknowledges until all is done. It acknowledges only behind windows that are
    all settled, as KalamDB advises, so that it does not cover the work of others."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self.windows: list[tuple[float, float, list[int]]] = []
        """When it was asked for, when it was answered, and the offsets."""

    def run(self) -> None:
        while not self._gateway.is_done():
            asked = time.monotonic()
            body = {
                "topic_id": TOPIC, "group_id": GROUP, "start": "Earliest", "limit": 40,
                "timeout_seconds": 1,
            }  # fmt: skip
            answer = self._gateway.ask("/v1/api/topics/consume", body)
            offsets = [each["offset"] for each in answer["messages"]] if answer else []
            if not offsets:
                continue
            self.windows.append((asked, time.monotonic(), offsets))
            self._gateway.finished(offsets)


class Gateway:
    """The address of the gateway that lives now, and what is done."""

    def __init__(self) -> None:
        self.address = ""
        self._lock = threading.Lock()
        self._done: set[int] = set()

    def is_done(self) -> bool:
        return len(self._done) == MESSAGES

    def ask(self, path: str, body: object) -> Any | None:
        host, _, port = self.address.rpartition(":")
        try:
            connection = http.client.HTTPConnection(host, int(port), timeout=10)
            with contextlib.closing(connection):
                headers = {"content-type": "application/json"}
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                text = response.read()
                return json.loads(text) if response.status == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)
            return None

    def finished(self, offsets: list[int]) -> None:
        """Acknowledge up to the first message that nobody has finished."""
        with self._lock:
            self._done.update(offsets)
            upto = next(at for at in range(MESSAGES + 1) if at not in self._done) - 1
        if upto >= 0:
            body = {"topic_id": TOPIC, "group_id": GROUP, "upto_offset": upto}
            self.ask("/v1/api/topics/ack", body)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_nothing_is_lost_and_no_windows_overlap_while_their_leases_live(tmp_path: Path) -> None:
    options = ("--consume-lease-ms", str(int(LEASE_SECONDS * 1000)))
    shared = Gateway()
    consumers = [Consumer(shared) for _ in range(4)]
    threads = [threading.Thread(target=each.run) for each in consumers]
    with running_server(data_dir=tmp_path / "data") as server:
        with queueber.connect(server.address) as client:
            client.create_topic(TOPIC)
            for _ in range(MESSAGES // 500):
                client.topic(TOPIC).publish([b"x"] * 500)
        for kill in range(8):
            with running_gateway(server.address, *options) as gateway:
                shared.address = gateway.address
                if not kill:
                    for each in threads:
                        each.start()
                time.sleep(0.4)
                if kill % 2:
                    server.kill()
                    server.start()
                else:
                    gateway.process.kill()
        with running_gateway(server.address, *options) as gateway:
            shared.address = gateway.address
            for each in threads:
                each.join()
            shared.finished([])  # the last one may have been lost
        with queueber.connect(server.address) as client:
            info = client.topic(TOPIC).describe_group(GROUP)

    assert shared.is_done()
    assert (info.lag, info.leased) == (0, 0)
    windows = [window for each in consumers for window in each.windows]
    leases: dict[int, list[tuple[float, float]]] = {}
    for asked, answered, offsets in windows:
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
        for offset in offsets:
            leases.setdefault(offset, []).append((asked, answered))
    assert sorted(leases) == list(range(MESSAGES))
    again = 0
    for times in leases.values():
        times.sort()
        for (asked, _), (_, answered) in pairwise(times):
            again += 1
            # The first lease began no earlier than it was asked for.
            assert answered - asked >= LEASE_SECONDS - 0.05, "two had it at once"
    assert again < MESSAGES
