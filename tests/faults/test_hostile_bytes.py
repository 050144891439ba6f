"""Hostile bytes and clients against a server process: it goes on, and stays small."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest

import queueber
from faults.bystander import Bystander
from faults.hostile.__main__ import fill
from faults.hostile.attacks import ATTACKS, BIG, Task
from faults.hostile.fuzz import KINDS, conversation
from faults.hostile.judge import attack
from faults.hostile.messages import bootstrap, call, framed
from faults.hostile.raw import Raw
from faults.hostile.witness import MemoryWatch, Witness
from queueber.limits import MIB
from queueber.service.session import REFUSALS_MAX
from queueber.testing import ServerProcess, running_server
from queueber.tls import TlsOptions
from tests.support.certificates import Authority, new_authority

pytestmark = pytest.mark.slow


@pytest.fixture(params=["plain", "TLS"])
def authority(request: pytest.FixtureRequest, tmp_path: Path) -> Authority | None:
    """Of the certificates of server and clients; None: connections are plain."""
    return new_authority(tmp_path / "certificates") if request.param == "TLS" else None


def tls_of(authority: Authority | None) -> TlsOptions | None:
    return None if authority is None else authority.trusted()


@contextmanager
def server_that_goes_on(authority: Authority | None = None) -> Iterator[ServerProcess]:
    """A server that serves others at the end, stops when told, and has seen no bug of its own."""
    options = () if authority is None else authority.server_options()
    with running_server(*options) as server:
        yield server
        with queueber.connect(server.address, tls=tls_of(authority)) as client:
            assert len(client.queue("after").add(b"still here")) == 1
        assert server.stop() == 0
        lines = server.log_file.read_text().splitlines()
        # Connections that are open at the end are cut off, which asyncio has its own words for.
        events = [json.loads(line) for line in lines if line.startswith("{")]
        wrong = {"unexpected_error", "crashed"}
        assert not [event for event in events if event["event"] in wrong]


def test_no_bytes_end_the_server(authority: Authority | None) -> None:
    tls = tls_of(authority)
    with server_that_goes_on(authority) as server:
        for name, make in KINDS.items():
            for seed in range(30 if tls is None else 10):
                with Raw(server.address, tls=tls) as raw:
                    if raw.send(make(Random(f"{name} {seed}"))):
                        raw.is_hung_up_on(0.003)
                    if seed % 3 == 0:
                        raw.reset()


def test_connection_that_ends_at_any_point_of_its_calls_does_no_harm(
    authority: Authority | None,
) -> None:
    tls = tls_of(authority)
    wait = call(90, "poll", req={"leaseValidityMs": 60_000, "timeoutMs": 60_000, "bound": True})
    data = conversation(Random(1)) + wait
    with server_that_goes_on(authority) as server:
        for end in range(0, len(data), 8):
            with Raw(server.address, tls=tls) as raw:
                raw.send(data[:end])
                if end % 16:
                    raw.reset()
        with queueber.connect(server.address, tls=tls) as client:
            queue = client.queue()
            while queue.stats().waiting_polls:
                pass
            assert queue.stats().leases <= 1  # one is not bound, and stays until it expires


def test_answers_that_are_never_read_are_bounded(authority: Authority | None) -> None:
    tls = tls_of(authority)
    with server_that_goes_on(authority) as server, ExitStack() as stack:
        fill(server.address, tls)
        streams = [
            stack.enter_context(Raw(server.address, receive_bytes=4096, tls=tls)) for _ in range(2)
        ]
        with MemoryWatch(server) as memory:
            for raw in streams:
                raw.send(bootstrap() + call(1, "queue", name=BIG))
                raw.send(b"".join(call(number, "peek", of=1) for number in range(2, 62)))
            with queueber.connect(server.address, tls=tls) as client:
                for _ in range(300):
                    client.queue("other").add(b"x")

    # Two connections have 128 MiB each, and one answer more than that, on its way.
    assert memory.most - memory.before < 600


def test_answers_that_are_kept_at_the_server_are_bounded() -> None:
    with server_that_goes_on() as server, Raw(server.address) as raw:
        fill(server.address)
        with MemoryWatch(server) as memory:
            raw.send(bootstrap() + call(1, "queue", name=BIG))
            for number in range(2, 62):
                raw.send(call(number, "peek", of=1, to_yourself=True))
            with queueber.connect(server.address) as client:
                for _ in range(300):
                    client.queue("other").add(b"x")

    assert memory.most - memory.before < 500


def test_refusals_that_their_caller_is_never_done_with_are_bounded() -> None:
    with server_that_goes_on() as server, Raw(server.address) as raw:
        reader = threading.Thread(target=lambda: list(raw.messages()), daemon=True)
        with MemoryWatch(server) as memory:
            raw.send(bootstrap())
            reader.start()
            for number in range(1, 3 * REFUSALS_MAX, 20):
                asks = (call(number + at, "queue", name="") for at in range(20))
                if not raw.send(b"".join(asks)):
                    break
            reader.join(60)

        assert not reader.is_alive(), "nobody hung up"

    assert memory.most - memory.before < 200


def test_message_takes_no_memory_for_what_it_only_declares_nor_while_its_call_waits(
    authority: Authority | None,
) -> None:
    tls = tls_of(authority)
    with (
        server_that_goes_on(authority) as server,
        ExitStack() as stack,
        MemoryWatch(server) as memory,
    ):
        for _ in range(20):
            raw = stack.enter_context(Raw(server.address, tls=tls))
            raw.send(bootstrap() + framed(bytes(4096), declared=[16 * MIB]))
        raw = stack.enter_context(Raw(server.address, tls=tls))
        raw.send(bootstrap())
        for number in range(40):
            wait = call(number + 1, "poll", req={"timeoutMs": 60_000})
            assert raw.send(framed(wait[8:], bytes(8 * MIB)))

    assert memory.most - memory.before < 150


def test_many_kinds_of_bad_clients_at_once_do_no_harm_to_what_another_is_told() -> None:
    kinds = ["floods", "many connections", "reads slowly", "comes and goes", "cancelled"]
    with server_that_goes_on() as server:
        fill(server.address)
        with Bystander(server.address) as bystander, MemoryWatch(server) as memory:
            attacks = [
                get_context("spawn").Process(
                    target=ATTACKS[kind].run, args=(Task(server.address, Random(kind), 2.0),)
                )
                for kind in kinds
            ]
            for each in attacks:
                each.start()
            for each in attacks:
                each.join(60)

    assert [each.exitcode for each in attacks] == [0] * len(kinds)
    assert bystander.wrong == []
    assert memory.most - memory.before < 1500


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_harms_neither_the_server_nor_others(name: str) -> None:
    with server_that_goes_on() as server:
        fill(server.address)
        witness = Witness(server.address)
        witness.take()
        verdict = attack(server, witness, name, Task(server.address, Random(name), 5.0))
        witness.stop()

    # How long others take depends on the machine; `python -m faults.hostile` judges that.
    assert not [word for word in verdict.wrong.split(", ") if word and "p99" not in word]
