"""What all calls share: who may call, TLS, health, reflection, and the life of processes."""

import base64
import contextlib
import signal
import socket
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

import queueber
from faults.grpc.frames import PREFACE, SETTINGS, call, frame
from queueber.clock import SystemClock
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.testing import ServerProcess, running_server
from tests.support.callers import add_token, add_user
from tests.support.certificates import HOSTS, new_authority
from tests.support.grpc import SECONDS, Sluice, running_grpc
from tests.support.http import running_gateway
from tests.support.web_tokens import claims, jwt_flags, sign, unsigned

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def refusal(call: object, *arguments: object) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as found:
        call(*arguments)  # type: ignore[operator]
    code: grpc.StatusCode = found.value.code()
    return code


def wait_health(sluice: Sluice, service: str, wanted: object) -> None:
    stub = health_pb2_grpc.HealthStub(sluice.channel)
    give_up_at = time.monotonic() + 30
    request = health_pb2.HealthCheckRequest(service=service)
    while stub.Check(request, timeout=SECONDS, wait_for_ready=True).status != wanted:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_health_is_that_of_the_process_and_of_the_server_behind_it(address: str) -> None:
    with Sluice(address) as sluice:
        wait_health(sluice, "", SERVING)
        wait_health(sluice, "sluice.v1.Sluice", SERVING)
        stub = health_pb2_grpc.HealthStub(sluice.channel)
        assert refusal(stub.Check, health_pb2.HealthCheckRequest(service="x")) is (
            grpc.StatusCode.NOT_FOUND
        )
        watched = stub.Watch(health_pb2.HealthCheckRequest(service="sluice.v1.Sluice"))
        assert next(watched).status == SERVING
        watched.cancel()


def test_health_without_a_server_is_not_serving() -> None:
    with (
        running_grpc("127.0.0.1:1", "--retry-timeout-ms=100") as (_, address),
        Sluice(address) as sluice,
    ):
        wait_health(sluice, "", SERVING)
        wait_health(sluice, "sluice.v1.Sluice", NOT_SERVING)
        assert refusal(sluice.publish, "t") is grpc.StatusCode.UNAVAILABLE


def test_reflection_shows_the_service_and_its_messages(address: str) -> None:
    with Sluice(address) as sluice:
        shown = ProtoReflectionDescriptorDatabase(sluice.channel)
        assert "sluice.v1.Sluice" in shown.get_services()
        found = shown.FindFileContainingSymbol("sluice.v1.Sluice")
        assert [each.name for each in found.service[0].method] == [
            "Publish", "BatchPublish", "ListTopics", "Subscribe",
        ]  # fmt: skip


def check_web_tokens(address: str) -> None:
    """What JSON Web Tokens may do at a door whose server has the topics `orders` and `secret`."""
    now_ms = SystemClock().now_ms()
    for web_token in (sign(claims(now_ms)), sign(claims(now_ms), "RS256")):
        with Sluice(address, authorization=f"Bearer {web_token}") as caller:
            assert caller.publish("orders").sequence
            stream = caller.subscribe("secret")
            stream.done()
            assert stream.status() == (grpc.StatusCode.OK, "")
    only_reads = sign(claims(now_ms, roles=["reader"]))
    with Sluice(address, authorization=f"Bearer {only_reads}") as caller:
        assert refusal(caller.publish, "orders") is grpc.StatusCode.PERMISSION_DENIED
        assert list(caller.topics()) == ["orders", "secret"]
    forged = unsigned({"alg": "none"}, claims(now_ms))
    for bad in (sign(claims(now_ms, exp=1)), sign(claims(now_ms, aud="others")), forged):
        with Sluice(address, authorization=f"Bearer {bad}") as caller:
            assert refusal(caller.publish, "orders") is grpc.StatusCode.UNAUTHENTICATED
            assert caller.subscribe("orders").status()[0] is grpc.StatusCode.UNAUTHENTICATED


def test_the_callers_credential_decides_as_it_does_for_http(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    admin, reader = add_token(file, "admin"), add_token(file, "reader")
    orders = add_token(file, "service", queues=(), topics=("orders",), name="orders")
    add_user(file, "ann", "a b:c", "admin")
    with (
        running_server("--tokens-file", str(file), *jwt_flags(tmp_path / "keys")) as server,
        running_grpc(server.address) as (_, address),
    ):
        with queueber.connect(server.address, token=admin) as client:
            client.create_topic("orders")
            client.create_topic("secret")
        with Sluice(address) as nobody:
            assert refusal(nobody.publish, "orders") is grpc.StatusCode.UNAUTHENTICATED
            assert nobody.subscribe("orders").status()[0] is grpc.StatusCode.UNAUTHENTICATED
            wait_health(nobody, "sluice.v1.Sluice", SERVING)
        with Sluice(address, authorization="Bearer wrong") as wrong:
            assert refusal(wrong.publish, "orders") is grpc.StatusCode.UNAUTHENTICATED
        with Sluice(address, authorization=f"Bearer {orders}") as caller:
            message_id = caller.publish("orders", b"m").message_id
            assert list(caller.topics()) == ["orders"]
            assert refusal(caller.publish, "secret") is grpc.StatusCode.PERMISSION_DENIED
            status, _ = caller.subscribe("secret").status()
            assert status is grpc.StatusCode.PERMISSION_DENIED
            stream = caller.subscribe("orders")
            stream.credit(1)
            assert [each.message_id for each in stream.take(1)] == [message_id]
            stream.cancel()
        with Sluice(address, authorization=f"Bearer {reader}") as caller:
            assert refusal(caller.publish, "orders") is grpc.StatusCode.PERMISSION_DENIED
            assert list(caller.topics()) == ["orders", "secret"]
        check_web_tokens(address)
        person = "Basic " + base64.b64encode(b"ann:a b:c").decode()
        with Sluice(address, authorization=person) as caller:
            assert caller.publish("secret").sequence


def test_grpc_has_the_certificate_of_http_and_a_new_one_after_sighup(tmp_path: Path) -> None:
    authority = new_authority(tmp_path / "authority")
    certificate = authority.issue("gateway", *HOSTS)
    trusted = grpc.ssl_channel_credentials(authority.ca_file.read_bytes())
    with (
        running_server() as server,
        running_grpc(server.address, "--tls-certificate", str(certificate)) as (gateway, address),
    ):
        with Sluice(address, credentials=trusted) as sluice:
            assert sluice.publish("t").sequence == 1
        with Sluice(address) as plain:
            call: Any = plain.channel.unary_unary("/sluice.v1.Sluice/Publish")
            with pytest.raises(grpc.RpcError):
                call(b"", timeout=2)
        other = new_authority(tmp_path / "other")
        certificate.write_bytes(other.issue("gateway", *HOSTS).read_bytes())
        gateway.process.send_signal(signal.SIGHUP)
        trusted = grpc.ssl_channel_credentials(other.ca_file.read_bytes())
        with Sluice(address, credentials=trusted) as sluice:
            assert sluice.publish("t").sequence == 2


def test_a_restarted_server_ends_streams_that_go_on_where_they_were() -> None:
    with (
        running_server() as server,
        running_grpc(server.address) as (_, address),
        Sluice(address) as sluice,
    ):
        ids = [sluice.publish("t", b"%d" % each).message_id for each in range(3)]
        stream = sluice.subscribe("t")
        stream.credit(2)
        stream.take(2)
        stream.ack(ids[0])
        with queueber.connect(server.address) as client:
            while client.topic("t").describe_group("default").cursors != [1]:
                time.sleep(0.01)
        server.stop()
        assert stream.status()[0] is grpc.StatusCode.UNAVAILABLE
        server.start()
        assert sluice.publish("t", b"3").sequence == 4
        again = sluice.subscribe("t")
        again.credit(3)
        assert again.payloads(3) == [b"1", b"2", b"3"]
        again.cancel()


def test_a_stopped_gateway_ends_streams_and_the_next_one_goes_on(server: ServerProcess) -> None:
    with running_grpc(server.address) as (gateway, address), Sluice(address) as sluice:
        sluice.publish("stopped", b"0")
        stream = sluice.subscribe("stopped")
        stream.credit(5)
        stream.take(1)
        assert gateway.stop() == 0
        assert stream.status() == (
            grpc.StatusCode.UNAVAILABLE, "the gateway is stopping; retry",
        )  # fmt: skip
        port = address.rpartition(":")[2]
        with running_grpc(server.address, port=port):
            again = sluice.subscribe("stopped")
            again.credit(1)
            assert again.payloads(1) == [b"0"]
            again.cancel()


def test_processes_share_the_port_and_take_over_from_each_other(server: ServerProcess) -> None:
    with running_grpc(server.address, "--processes=2") as (_, address), contextlib.ExitStack() as s:
        sluices = [s.enter_context(Sluice(address)) for _ in range(6)]
        sluices[0].publish("shared-port", b"0")
        streams = [each.subscribe("shared-port") for each in sluices]
        streams[0].credit(1)
        ended = [each.code() for each in (each.call for each in streams) if each.done()]
        assert set(ended) <= {grpc.StatusCode.ABORTED}
        for stream in streams:
            stream.cancel()


def test_a_port_that_is_taken_is_refused(address: str) -> None:
    with (
        pytest.raises(RuntimeError, match=r"cannot listen on .*: address already in use"),
        running_gateway("127.0.0.1:1", "--grpc", address),
    ):
        pass


def test_streams_have_a_limit_and_messages_of_callers_a_time(server: ServerProcess) -> None:
    flags = ("--grpc-streams-max=2", "--body-timeout-ms=500")
    with running_grpc(server.address, *flags) as (_, address), Sluice(address) as sluice:
        sluice.publish("limits")
        silent: Any = sluice.channel.stream_unary("/sluice.v1.Sluice/Publish")
        never = iter(lambda: time.sleep(20), 1)
        assert refusal(silent, never) is grpc.StatusCode.UNAVAILABLE
        streams = []
        for group in ("a", "b"):
            streams.append(sluice.subscribe("limits", group))
            streams[-1].credit(1)
            streams[-1].take(1)
        assert sluice.subscribe("limits", "c").status() == (
            grpc.StatusCode.UNAVAILABLE, "the gateway is busy: 2 streams are open; retry",
        )  # fmt: skip
        for stream in streams:
            stream.cancel()
        give_up_at = time.monotonic() + 20
        while not _gets_one(sluice, "limits", "c"):
            assert time.monotonic() < give_up_at


def _gets_one(sluice: Sluice, topic: str, group: str) -> bool:
    stream = sluice.subscribe(topic, group)
    stream.credit(1)
    try:
        return len(stream.take(1)) == 1
    except grpc.RpcError:
        return False
    finally:
        stream.cancel()


def test_heartbeats_are_sent_if_the_gateway_is_set_to(server: ServerProcess) -> None:
    with (
        running_grpc(server.address, "--grpc-heartbeat-ms=200") as (_, address),
        Sluice(address) as sluice,
    ):
        last = sluice.publish("beats").sequence
        stream = sluice.subscribe("beats", "g")
        beats = [next(stream.call) for _ in range(2)]
        assert [each.WhichOneof("response") for each in beats] == ["heartbeat"] * 2
        assert {each.heartbeat.latest_seq for each in beats} == {last}
        assert abs(beats[1].heartbeat.timestamp / 1000 - time.time()) < 10
        stream.cancel()


def test_a_compressed_message_is_not_unpacked(address: str) -> None:
    with Sluice(address) as sluice:
        call: Any = sluice.channel.unary_unary("/sluice.v1.Sluice/Publish")
        raw = wire.PublishRequest(topic="t", payload=bytes(1 << 20)).SerializeToString()
        with pytest.raises(grpc.RpcError) as found:
            call(raw, timeout=SECONDS, compression=grpc.Compression.Gzip)
        assert found.value.code() is grpc.StatusCode.UNIMPLEMENTED


def _field(number: int, text: bytes) -> bytes:
    assert len(text) < 1 << 14
    return bytes([number << 3 | 2, len(text) % 128 + 128, len(text) // 128]) + text


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/grpc.health.v1.Health/Check", 1),
        ("/grpc.health.v1.Health/Watch", 1),
        ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", 4),
        ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", 4),
        ("/sluice.v1.Sluice/Subscribe", 15),
        ("/sluice.v1.Sluice/ListTopics", 15),
    ],
)
def test_only_what_is_published_may_be_large(address: str, path: str, field: int) -> None:
    """A stream keeps its first message, and a thousand of 5 MB would be gigabytes."""
    small, large = _field(field, b"x" * 8000), _field(field, b"x" * 8000) * 3
    with Sluice(address) as sluice:
        for raw, wanted in ((small, False), (large, True)):
            method: Any = sluice.channel.stream_stream(path)
            call = method(iter([raw]), timeout=SECONDS, wait_for_ready=True)
            try:
                next(call, None)
                call.cancel()
                is_exhausted = False
            except grpc.RpcError:
                is_exhausted = call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert is_exhausted is wanted, (call.code(), call.details())
        assert call.details() == f"request: it has {len(large)} bytes; the limit is 16384"


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_quiet_stream_stays_open(address: str) -> None:
    """It is pinged, again and again, and grpcio answers."""
    with Sluice(address) as sluice:
        sluice.publish("quiet", b"0")
        stream = sluice.subscribe("quiet")
        stream.credit(2)
        stream.take(1)
        ends_at = time.monotonic() + 130
        while time.monotonic() < ends_at and stream.call.is_active():
            time.sleep(0.5)
        sluice.publish("quiet", b"1")
        assert stream.payloads(1) == [b"1"]
        stream.cancel()


def test_metrics_tell_of_calls_and_streams(server: ServerProcess) -> None:
    with running_grpc(server.address) as (gateway, address), Sluice(address) as sluice:
        sluice.publish("measured")
        stream = sluice.subscribe("measured")
        stream.credit(1)
        stream.take(1)
        refusal(sluice.publish, "")
        shown = gateway.ask("GET", "/metrics").body.decode()
        for wanted in (
            'grpc_calls_total{method="Publish"', 'status="INVALID_ARGUMENT"} 1.0',
            "grpc_deliveries_total", "grpc_streams{", "grpc_call_duration_seconds_bucket",
        ):  # fmt: skip
            assert wanted in shown.replace(f'process="{gateway.process.pid}",', ""), wanted
        stream.cancel()


def test_a_method_that_there_is_not_ends_its_call_and_no_other(address: str) -> None:
    """One whose path is no text ends the asyncio server of grpcio itself."""
    host, _, port = address.rpartition(":")
    with Sluice(address) as sluice:
        sluice.publish("before")
        stream = sluice.subscribe("before", "g")
        with socket.create_connection((host, int(port)), 10) as raw:
            raw.sendall(PREFACE + frame(SETTINGS, 0, 0) + call(1, b"Publi\xc9h"))
            received = b""
            while b"grpc-status\x0212" not in received:  # unimplemented
                received += raw.recv(1 << 16)
        stream.credit(1)
        assert len(stream.take(1)) == 1
        stream.cancel()
        nothing: Any = sluice.channel.unary_unary("/sluice.v1.Sluice/Nothing")
        assert refusal(nothing, b"") is grpc.StatusCode.UNIMPLEMENTED


def test_a_caller_that_does_not_read_is_reset_when_others_need_the_memory(
    server: ServerProcess,
) -> None:
    with queueber.connect(server.address) as client:
        client.create_topic("unread")
        client.topic("unread").publish([bytes(1 << 20)] * 3)
    flags = ("--answers-bytes-max=1048576",)
    with running_grpc(server.address, *flags) as (_, address), Sluice(address) as sluice:
        stream = sluice.subscribe("unread", "g")
        stream.credit(1)
        give_up_at = time.monotonic() + 20
        while stream.call.is_active():
            assert sluice.publish("unread-other").sequence
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        assert stream.call.code() is grpc.StatusCode.CANCELLED


def test_a_caller_that_hangs_up_leaves_no_trace_in_the_log(server: ServerProcess) -> None:
    with running_grpc(server.address) as (gateway, address), Sluice(address) as sluice:
        sluice.publish("hung-up", b"a")
        stream = sluice.subscribe("hung-up")
        stream.credit(1)
        assert stream.payloads(1) == [b"a"]
        stream.cancel()
        give_up_at = time.monotonic() + 30
        while b'status="CANCELLED"' not in gateway.ask("GET", "/metrics").body:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        time.sleep(0.1)  # what would write into the log comes after the stream has ended

        assert "Traceback" not in gateway.log_file.read_text()
