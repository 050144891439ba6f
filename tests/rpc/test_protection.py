"""A protected server: what a connection may do before, while and after it has authenticated."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import capnp
import pytest

import queueber
from queueber.auth.methods import METHODS
from queueber.errors import from_wire
from queueber.limits import SECOND_MS
from queueber.testing import ServerProcess, running_server
from tests.rpc.test_server import open_service, with_service
from tests.support.callers import add_token, add_user, remove_entries
from tests.support.web_tokens import AUDIENCE, ISSUER, claims, sign, write_key_file

PHRASE = "correct horse battery staple"


class Protected:
    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.server = server
        self.file = folder / "tokens.toml"
        self.keys = folder / "keys.json"
        self.audit = folder / "audit.jsonl"

    def token(self, role: str = "admin", **options: Any) -> str:
        """A new token, which the server knows."""
        made = add_token(self.file, role, **options)
        self.reload()
        return made

    def reload(self) -> None:
        assert self.server.process is not None
        before = self.server.log_file.read_text().count('"reloaded"')
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.server.log_file.read_text().count('"reloaded"') > before)

    def connect(self, **credential: Any) -> queueber.Client:
        return queueber.connect(self.server.address, **credential)

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    folder = tmp_path_factory.mktemp("protected")
    add_token(folder / "tokens.toml", "admin", name="root")
    add_user(folder / "tokens.toml", "alice", PHRASE)
    write_key_file(folder / "keys.json")
    options = (
        "--tokens-file", str(folder / "tokens.toml"), "--audit-file", str(folder / "audit.jsonl"),
        "--jwt-keys-file", str(folder / "keys.json"), "--jwt-audience", AUDIENCE,
        "--jwt-issuer", ISSUER,
    )  # fmt: skip
    with running_server(*options) as server:
        yield Protected(server, folder)


def authenticate(bootstrap: Any, token: str) -> Any:
    request = bootstrap.authenticate_request()
    request.init("credential").token = token
    return request.send()


async def code_of(answer: Any) -> str:
    try:
        await answer
    except capnp.KjException as failure:
        return (
            failure.type if failure.type == "DISCONNECTED" else from_wire(failure.description).code
        )
    return ""


# --- before -------------------------------------------------------------------------------------


def test_without_a_credential_only_hello_and_authenticate_are_answered(
    protected: Protected,
) -> None:
    found: dict[str, str] = {}

    async def scenario(bootstrap: Any) -> None:
        for method in METHODS["Service"] | METHODS["Queue"]:
            if method not in ("hello", "authenticate"):
                found[method] = await code_of(getattr(bootstrap, f"{method}_request")().send())
        await bootstrap.hello("me")

    with_service(protected.server, scenario)

    assert set(found.values()) == {"UNAUTHENTICATED"}
    assert len(found) > 40


def test_a_client_without_a_token_is_told_at_once(protected: Protected) -> None:
    began = time.monotonic()

    with pytest.raises(queueber.Unauthenticated, match="authenticate first: this server is prot"):
        protected.connect()

    assert time.monotonic() - began < 2


def test_a_wrong_token_is_told_and_not_tried_again(protected: Protected) -> None:
    began = time.monotonic()

    with pytest.raises(queueber.Unauthenticated, match="are not known here"):
        protected.connect(token="qbr_0123_nonsense", connect_timeout=30)

    assert time.monotonic() - began < 10


def test_calls_behind_a_wrong_credential_are_refused_with_it(protected: Protected) -> None:
    codes: list[str] = []

    async def scenario(bootstrap: Any) -> None:
        answer = authenticate(bootstrap, "wrong")
        service = answer.service
        calls = [service.describe(), service.queue("q", False).queue.stats(), service.listQueues()]
        codes.extend([await code_of(each) for each in [answer, *calls]])

    with_service(protected.server, scenario)

    assert codes == ["UNAUTHENTICATED"] * 4


def test_a_token_of_a_megabyte_is_refused(protected: Protected) -> None:
    async def scenario(bootstrap: Any) -> None:
        for token in ("x" * (1 << 20), "ü" * 1000, "a.b." + "c" * (1 << 20)):
            assert await code_of(authenticate(bootstrap, token)) == "UNAUTHENTICATED"

    with_service(protected.server, scenario)


def test_wrong_tokens_are_answered_ever_later_and_right_ones_at_once(protected: Protected) -> None:
    token = protected.token("reader", name="quick")
    seconds: list[float] = []

    async def scenario(_: Any) -> None:
        for _ in range(2):
            stream, bootstrap = await open_service(protected.server.address)
            for guess in range(2):
                began = time.monotonic()
                await code_of(authenticate(bootstrap, f"guess {guess}"))
                seconds.append(time.monotonic() - began)
            stream.close()
        stream, bootstrap = await open_service(protected.server.address)
        began = time.monotonic()
        await authenticate(bootstrap, token)
        seconds.append(time.monotonic() - began)
        stream.close()

    with_service(protected.server, scenario)

    *wrong, right = seconds
    assert min(wrong) >= 0.1
    assert wrong[-1] > 0.7
    assert right < 0.5


def test_one_connection_has_few_tries(tmp_path: Path) -> None:
    """Each try waits longer, so that this test has its own server, and sends them at once."""
    add_token(tmp_path / "tokens.toml", "admin")
    with running_server("--tokens-file", str(tmp_path / "tokens.toml")) as server:

        async def scenario(bootstrap: Any) -> None:
            first, second = authenticate(bootstrap, "a"), authenticate(bootstrap, "b")
            assert await code_of(second) == "FAILED_PRECONDITION"
            assert await code_of(first) == "UNAUTHENTICATED"
            assert await code_of(authenticate(bootstrap, "c")) == "UNAUTHENTICATED"

        with_service(server, scenario)


# --- while ----------------------------------------------------------------------------------------


def test_a_connection_authenticates_once(protected: Protected) -> None:
    token = protected.token("reader", name="once")

    async def scenario(bootstrap: Any) -> None:
        answer = await authenticate(bootstrap, token)
        assert await code_of(authenticate(bootstrap, token)) == "FAILED_PRECONDITION"
        assert await code_of(authenticate(answer.service, token)) == "FAILED_PRECONDITION"
        assert (await answer.service.whoAmI()).caller.name == "once"
        # The bootstrap object itself is as useless as before.
        assert await code_of(bootstrap.describe()) == "UNAUTHENTICATED"

    with_service(protected.server, scenario)


def test_everything_works_on_behind_a_token(protected: Protected) -> None:
    token = protected.token("admin", name="worker of all")
    with protected.connect(token=token) as client:
        queue = client.queue("jobs")
        queue.add([b"a", b"b"])
        lease = queue.poll(2, lease=60)
        assert lease.complete([b"1", b"2"]) == [True, True]
        client.topic("news").publish([b"x"])
        with client.topic("news").subscribe(group="g") as subscription:
            message = next(iter(subscription))
            assert message.ack()
        assert client.server().is_protected


def test_users_and_web_tokens_are_callers_too(protected: Protected) -> None:
    with protected.connect(user="alice", password=PHRASE) as client:
        assert client.who_am_i().name == "alice"
    now_ms = time.time_ns() // 1_000_000
    grants = [{"role": "worker", "queues": ["ocr-*"]}]
    with protected.connect(token=sign(claims(now_ms, queueber=grants))) as client:
        assert client.who_am_i().grants == (queueber.Grant("worker", ("ocr-*",), ()),)
        with pytest.raises(queueber.PermissionDenied):
            client.queue("ocr-1").add(b"x")


def test_a_token_may_be_a_function_that_is_asked_for_each_connection(protected: Protected) -> None:
    tokens = [protected.token("reader", name="first"), protected.token("reader", name="second")]
    asked = iter(tokens)
    with protected.connect(token=lambda: next(asked)) as client:
        assert client.who_am_i().name == "first"
        remove_entries(protected.file, "first")
        protected.reload()
        assert client.who_am_i().name == "second"


def test_the_awaited_client_authenticates_too(protected: Protected) -> None:
    token = protected.token("reader", name="awaited")

    async def main() -> str:
        async with queueber.connect_async(protected.server.address, token=token) as client:
            return (await client.who_am_i()).name

    assert asyncio.run(main()) == "awaited"


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": ""}, {"token": "  "}, {"token": 7}, {"token": "x" * 20_000},
        {"user": "a"}, {"password": "b"}, {"token": "t", "user": "a", "password": "b"},
        {"user": 1, "password": 2}, {"token": lambda: 7}, {"token": lambda: ""},
    ],
)  # fmt: skip
def test_wrong_credentials_of_a_program_are_refused_before_any_call(
    wrong: dict[str, Any], protected: Protected
) -> None:
    with pytest.raises(queueber.InvalidArgument, match=r"^(token|user): "):
        protected.connect(**wrong)


# --- after ----------------------------------------------------------------------------------------


def test_a_connection_ends_with_its_credential_and_its_capabilities_do(
    protected: Protected,
) -> None:
    expires_at_ms = (time.time_ns() // 1_000_000 // SECOND_MS + 3) * SECOND_MS
    token = protected.token("admin", name="short", expires_at_ms=expires_at_ms)
    codes: list[str] = []

    async def scenario(bootstrap: Any) -> None:
        answer = await authenticate(bootstrap, token)
        assert answer.caller.expiresAtMs == expires_at_ms
        queue = (await answer.service.queue("jobs")).queue
        await queue.stats()
        waiting = queue.poll_request()
        waiting.req.timeoutMs = 60_000
        codes.append(await code_of(waiting.send()))
        later = (queue.stats(), answer.service.describe(), bootstrap.hello("me"))
        codes.extend([await code_of(call) for call in later])

    with_service(protected.server, scenario)

    assert codes == ["DISCONNECTED"] * 4
    assert time.time() * SECOND_MS < expires_at_ms + 5 * SECOND_MS
    with pytest.raises(queueber.Unauthenticated, match="has expired"):
        protected.connect(token=token)


def test_a_revoked_token_ends_its_connections_and_no_others(protected: Protected) -> None:
    stays = protected.connect(token=protected.token("admin", name="stays"))
    goes = protected.connect(token=protected.token("admin", name="goes"))
    stays.queue("jobs").stats()
    goes.queue("jobs").stats()
    log = protected.server.log_file

    remove_entries(protected.file, "goes")
    protected.reload()

    with pytest.raises(queueber.Unauthenticated, match="are not known here"):
        goes.queue("jobs").stats()
    stays.queue("jobs").stats()
    ended = [
        json.loads(line) for line in log.read_text().splitlines() if "credential_ended" in line
    ]
    assert (ended[-1]["identity"], ended[-1]["reason"]) == ("goes", "revoked")
    stays.close()
    goes.close()


def test_a_file_that_became_wrong_changes_nothing(protected: Protected) -> None:
    client = protected.connect(token=protected.token("admin", name="keeps"))
    good = protected.file.read_text()

    protected.file.write_text("nonsense")
    protected.reload()

    assert client.who_am_i().name == "keeps"
    failed = [
        line
        for line in protected.server.log_file.read_text().splitlines()
        if "reload_failed" in line
    ]
    assert "cannot read" in failed[-1]
    protected.file.write_text(good)
    protected.reload()
    client.close()


def test_a_server_that_is_not_protected_takes_every_credential(tmp_path: Path) -> None:
    with running_server() as server, queueber.connect(server.address, token="whatever") as client:
        everything = queueber.Grant("admin", ("*",), ("*",))
        assert client.who_am_i() == queueber.CallerInfo("", (everything,), 0)
        assert not client.server().is_protected
        client.queue("q").add(b"x")


# --- the audit log, and secrets -------------------------------------------------------------------


def test_acts_and_refusals_are_audited_and_work_is_not(protected: Protected) -> None:
    token = protected.token("admin", name="auditor", queues=("audit-*",), topics=("audit-*",))
    before = len(protected.audited())
    with protected.connect(token=token) as client:
        client.create_queue("audit-1")
        queue = client.queue("audit-1")
        queue.add(b"x")
        queue.poll()
        queue.pause()
        queue.purge("leased")
        client.queue("audit-2").add(b"x")
        client.publish({"audit-t": [b"x"]})
        client.topic("audit-t").trim(start="latest")
        client.delete_queue("audit-1")
        with pytest.raises(queueber.NotFound):
            client.configure_topic("audit-none", retention=1)
        with pytest.raises(queueber.PermissionDenied):
            client.delete_queue("default")
    found = protected.audited()[before:]

    assert {each["identity"] for each in found} == {"auditor"}
    assert {each["caller"].rpartition(":")[0] for each in found} == {"127.0.0.1"}
    assert [
        (each["method"], each.get("queue") or each.get("topic"), each["outcome"]) for each in found
    ] == [
        ("createQueue", "audit-1", "ok"),
        ("pause", "audit-1", "ok"),
        ("purge", "audit-1", "ok"),
        ("create", "audit-2", "ok"),
        ("create", "audit-t", "ok"),
        ("trim", "audit-t", "ok"),
        ("deleteQueue", "audit-1", "ok"),
        ("deleteQueue", "default", "PERMISSION_DENIED"),
    ]


def test_secrets_reach_no_log_no_error_and_no_process_list(tmp_path: Path) -> None:
    """Everything that the server and the command write, and what the kernel shows of them."""
    file = tmp_path / "tokens.toml"
    secrets = [
        add_token(file, "admin"),
        "a-phrase-that-alice-knows",
        "qbr_0badcafe_some-wrong-secret",
    ]
    add_user(file, "alice", secrets[1])
    now_ms = time.time_ns() // 1_000_000
    secrets.append(sign(claims(now_ms, aud="another")))
    keys = write_key_file(tmp_path / "keys.json")
    options = (
        "--tokens-file", str(file), "--jwt-keys-file", str(keys), "--jwt-audience", AUDIENCE,
        "--jwt-issuer", ISSUER, "--log-level", "debug",
    )  # fmt: skip
    seen: list[str] = []
    with running_server(*options, data_dir=tmp_path / "data") as server:
        assert server.process is not None
        credentials: list[dict[str, Any]] = [
            {"token": secrets[0]},
            {"user": "alice", "password": secrets[1]},
            {"user": "alice", "password": secrets[1] + "!"},
            {"user": secrets[2], "password": secrets[2]},
            {"token": secrets[2]},
            {"token": secrets[3]},
        ]
        for credential in credentials:
            try:
                with queueber.connect(server.address, **credential) as client:
                    client.queue("q").add(b"x")
                    seen += [repr(client), repr(client._calls), repr(client._target)]
            except queueber.QueueberError as error:
                seen += [str(error), repr(error), *map(str, error.args)]
        environment = {**os.environ, "QUEUEBER_TOKEN": secrets[0]}
        command = [sys.executable, "-m", "queueber", "queues", "--address", server.address]
        listed = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        environment["QUEUEBER_TOKEN"] = secrets[2]
        wrong = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        assert wrong.returncode == 4
        seen += [listed.stdout, listed.stderr, wrong.stdout, wrong.stderr, str(command)]
        seen.append(Path(f"/proc/{server.process.pid}/cmdline").read_text())
    seen.append(server.log_file.read_text())

    everything = "\n".join(seen)
    assert "queue_created" in everything
    for secret in secrets:
        assert secret not in everything
        assert secret.rpartition("_")[2] not in everything


def test_quotas_hold_over_all_connections_of_a_caller_and_end_with_time(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token, other = add_token(file, "admin", name="busy"), add_token(file, "admin", name="other")
    options = ("--caller-calls-per-second-max", "20", "--caller-queues-max", "3")
    with running_server("--tokens-file", str(file), *options) as server:

        async def scenario(_: Any) -> None:
            codes: list[str] = []
            streams = []
            for _ in range(2):
                stream, bootstrap = await open_service(server.address)
                service = (await authenticate(bootstrap, token)).service
                streams.append((stream, bootstrap, service))
                codes += [await code_of(service.whoAmI()) for _ in range(15)]
            assert codes[:15] == [""] * 15
            assert codes[-1] == "UNAVAILABLE"
            stream, bootstrap = await open_service(server.address)
            assert await code_of((await authenticate(bootstrap, other)).service.whoAmI()) == ""
            await asyncio.sleep(0.2)
            assert await code_of(streams[0][2].whoAmI()) == ""

        with_service(server, scenario)
        # A client of ours waits by itself.
        with queueber.connect(server.address, token=token) as client:
            for _ in range(40):
                client.who_am_i()
            time.sleep(1)
            client.create_queue("a")
            client.create_queue("b")
            with pytest.raises(queueber.ResourceExhausted, match="its limit is 3, delete some"):
                client.create_queue("c")
            client.create_queue("b")
