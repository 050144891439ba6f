"""Webhooks reach public addresses alone, whatever a URL or a name's owner tries."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterable
from ipaddress import ip_address

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from queueber.clock import SystemClock
from queueber.gateway.streams.subscriptions.records.positions import Position
from queueber.gateway.streams.subscriptions.records.record import Link, Record, Wake
from queueber.gateway.streams.subscriptions.refusals import Refusal
from queueber.gateway.streams.subscriptions.webhooks.sender import Outcome, Sender, Sent
from queueber.gateway.streams.subscriptions.webhooks.signing import SigningKeys
from queueber.gateway.streams.subscriptions.webhooks.targets import (
    check_address,
    resolve,
    to_target,
)
from tests.support.webhooks import running_receiver

PRIVATE_4 = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1",
    "192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.254", "255.255.255.255",
]  # fmt: skip
PRIVATE_6 = [
    "::", "::1", "::2", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:808:808::1", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fdff::1",
    "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
]  # fmt: skip
MAPPED = [f"::ffff:{each}" for each in [*PRIVATE_4, "8.8.8.8"]]
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]


def rejected(url: str, *, allows_loopback: bool = False) -> str:
    with pytest.raises(Refusal) as refused:
        to_target(url, allows_loopback=allows_loopback)
    assert (refused.value.status, refused.value.code) == (400, "WEBHOOK_URL_REJECTED")
    return refused.value.detail


def in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [*PRIVATE_4, *PRIVATE_6, *MAPPED])
def test_an_address_that_is_not_public_is_refused_in_a_url(address: str) -> None:
    rejected(f"https://{in_brackets(address)}/hook")
    rejected(f"http://{in_brackets(address)}/hook")


@pytest.mark.parametrize("address", [*PRIVATE_4, *PRIVATE_6, *MAPPED])
def test_a_name_that_resolves_to_it_is_refused(address: str) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return [address]

    target = to_target("https://hooks.example/", allows_loopback=True)

    with pytest.raises(Refusal):
        asyncio.run(resolve(target, resolver))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_taken(address: str) -> None:
    check_address(ip_address(address))

    assert to_target(f"https://{in_brackets(address)}/", allows_loopback=False).host == address


def test_one_private_address_among_public_ones_is_enough_to_refuse_a_name() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["8.8.8.8", "10.0.0.1"]

    target = to_target("https://hooks.example/", allows_loopback=False)

    with pytest.raises(Refusal, match=r"10\.0\.0\.1"):
        asyncio.run(resolve(target, resolver))


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1",
        "0x7f.1", "127.0.0.01", "10.1", "0", "0x", "1.2.3.4.5", "256.256.256.256", "a.1", "a.0x1",
        "[::1%25lo]", "[fe80::1%eth0]", "[::1", "::1", "[1.2.3.4]", "", ".", "..", "a..b", "-a.b",
        "a b.example", "ex%61mple.com", "127.0.0.1%00.example", "exämple.com", "①27.0.0.1", "a,b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("allows_loopback", [False, True])
def test_a_host_that_is_written_oddly_is_refused(host: str, allows_loopback: bool) -> None:
    rejected(f"https://{host}/hook", allows_loopback=allows_loopback)
    rejected(f"http://{host}/hook", allows_loopback=allows_loopback)


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example", "//hooks.example/", "ftp://hooks.example/", "file:///etc/passwd",
        "gopher://hooks.example/", "javascript:alert(1)", "data:,x", "unix:/run/docker.sock",
        "ws://hooks.example/", "http://hooks.example/", "http://8.8.8.8/",
        "https://user@hooks.example/", "https://user:@hooks.example/", "https://@hooks.example/",
        "https://8.8.8.8@127.0.0.1/", "https://hooks.example#@127.0.0.1/", "https://hooks.example/#",
        "https://hooks.example\\@127.0.0.1/", "https://hooks.example/a b",
        "https://hooks.example/\r\nX: y", "https://hooks.example/\x00", "https://hooks.example/é", "https:///hook",
        "https:hooks.example",
        "https://hooks.example/" + "a" * 2048, 42 * "https://",
    ],
)  # fmt: skip
def test_a_url_with_anything_odd_is_refused(url: str) -> None:
    rejected(url)
    rejected(url, allows_loopback=True)


@pytest.mark.parametrize("port", ["0", "1", "22", "25", "53", "80", "110", "444", "1023", "65536",
                                  "99999", "-1", "x", "", "443x", "\uff11234"])  # fmt: skip
def test_a_port_of_another_service_is_refused(port: str) -> None:
    rejected(f"https://hooks.example:{port}/")


@pytest.mark.parametrize("port", ["443", "1024", "8443", "65535"])
def test_other_ports_are_taken(port: str) -> None:
    target = to_target(f"https://hooks.example:{port}/a?b=c", allows_loopback=False)

    assert (target.port, target.path) == (int(port), "/a?b=c")


# --- loopback -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.9", "[::1]", "localhost", "LOCALHOST", "localhost.",
             "a.localhost"],
)  # fmt: skip
def test_this_machine_is_refused_unless_its_operator_allows_it(host: str) -> None:
    assert "--webhook-loopback" in rejected(f"http://{host}:8080/") or "not a public" in rejected(
        f"http://{host}:8080/"
    )
    rejected(f"https://{host}/")

    assert to_target(f"http://{host}:80/", allows_loopback=True).is_loopback


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "https://192.168.0.1/", "http://[fe80::1]/",
                                 "http://0.0.0.0/", "http://[::]/", "http://[::ffff:127.0.0.1]/",
                                 "http://2130706433/", "http://a.example/"])  # fmt: skip
def test_only_this_machine_is_allowed_then(url: str) -> None:
    rejected(url, allows_loopback=True)


@pytest.mark.parametrize("address", ["10.0.0.1", "8.8.8.8", "::ffff:127.0.0.1", "0.0.0.0"])
def test_localhost_that_is_another_machine_is_refused(address: str) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return [address]

    target = to_target("http://localhost/", allows_loopback=True)

    with pytest.raises(Refusal):
        asyncio.run(resolve(target, resolver))


# --- sending --------------------------------------------------------------------------------------


def record(url: str) -> Record:
    wake = Wake("w_1", 1, {"a": Position(1, 1)}, lease_until_ms=2, attempt_at_ms=1)
    return Record(
        id="s", type="webhook", lease_ttl_ms=2000, created_at_ms=1, config_hash="", generation=1,
        base_url="http://gateway", webhook_url=url, links={"a": Link(Position(1, 0))}, wake=wake,
    )  # fmt: skip


class Resolver:
    """Answers with one list of addresses after the other, and then with the last."""

    def __init__(self, *answers: Iterable[str]) -> None:
        self.answers = [list(each) for each in answers]
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def send(url: str, resolver: Resolver, tls: ssl.SSLContext | None = None) -> Sent:
    keys = SigningKeys((Ed25519PrivateKey.generate(),))
    sender = Sender(SystemClock(), allows_loopback=True, resolver=resolver, tls=tls)
    return asyncio.run(sender.send(keys, record(url)))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "where", ["http://127.0.0.1:{port}/other", "http://169.254.169.254/", "/other"]
)
def test_a_redirect_is_not_followed(status: int, where: str) -> None:
    with running_receiver(lambda got: (status, {"done": True})) as receiver:
        receiver.headers = {"location": where.format(port=receiver.port)}

        sent = send(receiver.url, Resolver(["127.0.0.1"]))

        assert sent == Sent(Outcome.FAILED, f"the answer has status {status}")
        assert [receiver.next().path, receiver.is_quiet(0.2)] == ["/hook", True]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_receiver() as receiver, running_receiver() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                     "ALL_PROXY"):  # fmt: skip
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")

        assert send(receiver.url, Resolver(["127.0.0.1"])) == Sent(Outcome.ARRIVED)

        assert proxy.is_quiet(0.1)
        assert receiver.next().headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_name_that_moves_is_resolved_once_and_only_the_checked_address_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The owner of a name lets it point to a public address, and then to this machine."""
    tried: list[object] = []

    async def refuse(host: object, port: int, **named: object) -> None:
        tried.append((host, port, named["server_hostname"]))
        raise ConnectionRefusedError("no network in tests")

    monkeypatch.setattr(asyncio, "open_connection", refuse)
    moving = Resolver(["8.8.8.8"], ["127.0.0.1"])

    first = send("https://moves.example:8443/hook", moving)
    second = send("https://moves.example:8443/hook", moving)

    assert first == Sent(Outcome.FAILED, "no network in tests")
    assert tried == [("8.8.8.8", 8443, "moves.example")]
    assert (second.outcome, "127.0.0.1" in second.reason) == (Outcome.FAILED, True)
    assert moving.asked == ["moves.example", "moves.example"]


def test_a_certificate_must_be_of_the_name_though_the_address_is_connected_to() -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    for name, expected in (("localhost", Outcome.ARRIVED), ("other.example", Outcome.FAILED)):
        with running_receiver() as receiver:
            serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(name).configure_cert(serving)
            receiver.server.socket = serving.wrap_socket(receiver.server.socket, server_side=True)
            url = f"https://localhost:{receiver.port}/hook"

            assert send(url, Resolver(["127.0.0.1"]), trusting).outcome is expected


def test_an_answer_without_an_end_is_cut_off() -> None:
    with running_receiver(lambda got: (200, {"done": True, "more": "x" * 200_000})) as receiver:
        assert send(receiver.url, Resolver(["127.0.0.1"])) == Sent(Outcome.ARRIVED)


def test_a_receiver_that_does_not_answer_is_left_after_the_lease() -> None:
    answered = threading.Event()

    def wait(got: object) -> tuple[int, object]:
        answered.wait(10)
        return 200, {}

    with running_receiver(wait) as receiver:
        sent = send(receiver.url, Resolver(["127.0.0.1"]))
        answered.set()

    assert sent == Sent(Outcome.FAILED, "no answer within 2000 ms")


def test_what_is_not_http_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        sent = send(f"http://127.0.0.1:{listening.getsockname()[1]}/", Resolver(["127.0.0.1"]))
        thread.join()

    assert sent.outcome is Outcome.FAILED
