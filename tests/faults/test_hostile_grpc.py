"""Every hostile caller of the gRPC port, for a moment each: the gateway goes on, and stays small.

How much others notice of it is measured by `python -m faults.grpc`.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import grpc
import pytest

from faults.grpc import table
from faults.grpc.__main__ import FLAGS, fill
from faults.grpc.attacks import ATTACKS
from faults.grpc.tls_attacks import TLS_ATTACKS
from faults.http.judge import Verdict
from faults.http.task import Address, Attack, Task
from faults.http.watch import Peak, Usage
from queueber.config import split_address
from queueber.testing import running_server
from queueber.tls import TlsOptions
from tests.support.certificates import HOSTS, new_authority
from tests.support.grpc import Sluice, running_grpc
from tests.support.http import GatewayProcess

pytestmark = pytest.mark.slow

SECONDS, SECONDS_WITH_TLS = 0.5, 1.5
GROWTH_MB_MAX = 400.0
_STREAMS = "queueber_gateway_grpc_streams{"


@dataclass(slots=True)
class Attacked:
    gateway: GatewayProcess
    address: Address
    tls: TlsOptions | None
    sluice: Sluice


def _attacked(folder: Path | None) -> Iterator[Attacked]:
    """A port with TLS if there is a folder for certificates."""
    with ExitStack() as stack:
        flags, tls, credentials = FLAGS, None, None
        if folder is not None:
            authority = new_authority(folder)
            flags = (*flags, "--tls-certificate", str(authority.issue("gateway", *HOSTS)))
            credentials = grpc.ssl_channel_credentials(authority.ca_file.read_bytes())
            tls = TlsOptions(authority.ca_file)
        server = stack.enter_context(running_server())
        gateway, address = stack.enter_context(running_grpc(server.address, *flags))
        fill(server.address)
        sluice = stack.enter_context(Sluice(address, credentials=credentials))
        yield Attacked(gateway, split_address(address), tls, sluice)
        assert gateway.stop() == 0
        assert "Traceback" not in gateway.log_file.read_text()


@pytest.fixture(scope="module")
def plain() -> Iterator[Attacked]:
    yield from _attacked(None)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    yield from _attacked(tmp_path_factory.mktemp("certificates"))


def _check(attacked: Attacked, name: str) -> None:
    known = {**ATTACKS, **TLS_ATTACKS}
    seconds = SECONDS if attacked.tls is None else SECONDS_WITH_TLS

    def attack(seconds: float) -> int:
        return known[name](Task(attacked.address, Random(name), seconds, attacked.tls))

    with Peak(Usage(attacked.gateway.process.pid)) as peak:
        assert attack(seconds) or attack(10 * seconds), "a busy machine: it got to do nothing"
        assert attacked.sluice.publish("witness", b"still here").sequence
    assert peak.most - peak.before < GROWTH_MB_MAX


@pytest.mark.parametrize("name", ATTACKS)
def test_the_gateway_goes_on_and_stays_small(plain: Attacked, name: str) -> None:
    _check(plain, name)


def test_streams_that_are_refused_later_give_their_places_back(plain: Attacked) -> None:
    assert ATTACKS["refused later"](Task(plain.address, Random(7), SECONDS))

    give_up_at = time.monotonic() + 20
    while _streams(plain.gateway):
        assert time.monotonic() < give_up_at, f"{_streams(plain.gateway)} streams are open"
        time.sleep(0.02)


def _streams(gateway: GatewayProcess) -> float:
    told = gateway.ask("GET", "/metrics").body.decode()
    (line,) = [each for each in told.splitlines() if each.startswith(_STREAMS)]
    return float(line.split()[-1])


@pytest.mark.parametrize(
    "name", [*TLS_ATTACKS, *(pytest.param(each, marks=pytest.mark.long) for each in ATTACKS)]
)
def test_so_it_does_with_tls(encrypted: Attacked, name: str) -> None:
    _check(encrypted, name)


@pytest.mark.parametrize(("has_tls", "attacks"), [(False, ATTACKS), (True, TLS_ATTACKS)])
def test_the_page_tells_what_each_attack_does(has_tls: bool, attacks: dict[str, Attack]) -> None:
    """Or run `python -m faults.grpc --page`."""
    _, told, _ = table.between(table.PAGE.read_text(), table.name_of(has_tls=has_tls))
    rows = [line.split(" | ")[:2] for line in told.splitlines()[2:]]

    assert rows == [[f"| {name}", table.purpose(attack)] for name, attack in attacks.items()]


def test_the_better_try_of_an_attack_is_shown() -> None:
    def tried(harmed_ms: float, wrong: str = "") -> Verdict:
        return Verdict("pings", 7, 80.0, 90.5, 2.0, harmed_ms, wrong)

    found = [table.better_of(each) for each in (
        [tried(70.0, "p99 35.0x"), tried(20.0), tried(90.0, "p99 45.0x")],
        [tried(70.0, "p99 35.0x"), tried(60.0, "p99 30.0x")],
    )]  # fmt: skip

    rows = table.rendered(ATTACKS, found).splitlines()[2:]
    assert rows == [
        "| pings | nothing but pings and settings | 2.0 | 20.0 | 90 |",
        "| pings | nothing but pings and settings | 2.0 | **60.0** (p99 30.0x) | 90 |",
    ]
