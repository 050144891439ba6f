"""Every method of the wire with every role: refused exactly where the role has no such right.

The methods come from the schema, so one without a decision fails.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import capnp
import pytest

import queueber
from queueber.auth.methods import METHODS, Scope, allowed_methods
from queueber.auth.roles import ROLES, Action
from queueber.errors import PermissionDenied, from_wire
from queueber.rpc.handlers import ServiceHandler
from queueber.rpc.queue_handlers import QueueHandler
from queueber.rpc.topic_handlers import TopicHandler
from queueber.schema import wire
from queueber.testing import ServerProcess, running_server
from tests.rpc.test_server import open_service, with_service
from tests.support.callers import add_token

INTERFACES = {
    "Queue": wire.Queue,
    "Service": wire.Service,
    "Topic": wire.Topic,
    "Subscription": wire.Subscription,
    "Consumer": wire.Consumer,
}
METHODS_OF_QUEUES = set(wire.Queue.schema.method_names)

HANDLERS = {"Queue": QueueHandler, "Service": ServiceHandler, "Topic": TopicHandler}

DENIED = "PERMISSION_DENIED"


class Protected:
    """A server with a token for each role, for what begins with `mine`, and for everything."""

    def __init__(self, server: ServerProcess, tokens: dict[str, str]) -> None:
        self.server = server
        self.tokens = tokens

    def client(self, role: str) -> queueber.Client:
        return queueber.connect(self.server.address, token=self.tokens[role])


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    file = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    mine = ("mine*",)
    tokens = {role: add_token(file, role, queues=mine, topics=mine) for role in ROLES}
    tokens |= {f"{role}*": add_token(file, role, name=f"{role} of all") for role in ROLES}
    with running_server("--tokens-file", str(file)) as server:
        yield Protected(server, tokens)


def schema_methods(interface: str) -> set[str]:
    names = set(INTERFACES[interface].schema.method_names)
    return names - METHODS_OF_QUEUES if interface == "Service" else names


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_method_of_the_schema_has_a_decision(interface: str) -> None:
    assert schema_methods(interface) == set(METHODS[interface])


def test_every_interface_of_the_schema_has_decisions() -> None:
    text = Path(wire.__file__).read_text()
    declared = {
        line.split()[1].rstrip("{") for line in text.splitlines() if line.startswith("interface ")
    }

    assert declared == set(METHODS)


@pytest.mark.parametrize("interface", METHODS)
def test_a_decision_names_a_right_or_says_that_none_is_needed(interface: str) -> None:
    needs = {Scope.OWN, Scope.QUEUE, Scope.TOPIC, Scope.SERVER}

    for method, rule in METHODS[interface].items():
        assert bool(rule.actions) == (rule.scope in needs), method


def test_a_capability_without_actions_allows_nothing_of_its_own() -> None:
    assert allowed_methods("Queue", frozenset()) == frozenset()
    assert allowed_methods("Topic", frozenset()) == {"group"}


# --- every method with every role, over a socket --------------------------------------------------


class Caller:
    """A connection that has authenticated, with nothing of our client between."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._token = token

    async def __aenter__(self) -> Any:
        self._stream, self._bootstrap = await open_service(self._address)
        request = self._bootstrap.authenticate_request()
        request.init("credential").token = self._token
        return (await request.send()).service

    async def __aexit__(self, *error: object) -> None:
        self._stream.close()


def fill(request: Any, interface: str, method: str, name: str) -> None:
    """Enough that the call ends soon; most of its arguments are missing, and refused later."""
    if METHODS[interface][method].scope in (Scope.QUEUE, Scope.TOPIC):
        request.name = name
    if method == "poll":
        request.req.noWait = True
    if method == "fork":
        request.req.name = name
    if method == "subscribe":
        request.req.group = "g"


async def outcome(capability: Any, interface: str, method: str, name: str) -> str:
    """Empty, or the code of the error."""
    request = getattr(capability, f"{method}_request")()
    fill(request, interface, method, name)
    try:
        await request.send()
    except capnp.KjException as failure:
        return from_wire(failure.description).code
    return ""


def is_allowed(interface: str, method: str, role: str, *, everywhere: bool) -> bool:
    rule = METHODS[interface][method]
    if rule.scope is Scope.SERVER and not everywhere:
        return False
    # With a group, as this caller has it, a subscription is work.
    needed = {Action.WORK} if method == "subscribe" else rule.actions
    return bool(needed & ROLES[role])


def table(protected: Protected, role: str, interface: str, *, everywhere: bool) -> dict[str, str]:
    """Of each method that the server has the code of the answer."""
    found: dict[str, str] = {}
    name = f"mine-{role}-{interface}"

    token = protected.tokens[f"{role}*" if everywhere else role]

    async def scenario(_: Any) -> None:
        address = protected.server.address
        async with (
            Caller(address, protected.tokens["admin*"]) as admin,
            Caller(address, token) as service,
        ):
            await admin.queue(name)
            await admin.topic(name)
            capability = {
                "Service": service,
                "Queue": service.queue(name, True).queue,
                "Topic": service.topic(name, True).topic,
            }[interface]
            for method, rule in METHODS[interface].items():
                has_method = hasattr(HANDLERS[interface], f"{method}_context")
                if has_method and rule.actions:
                    call = outcome(capability, interface, method, name)
                    found[method] = await asyncio.wait_for(call, 20)

    with_service(protected.server, scenario)
    return found


@pytest.mark.parametrize("everywhere", [False, True], ids=["some", "all"])
@pytest.mark.parametrize("interface", ["Queue", "Service", "Topic"])
@pytest.mark.parametrize("role", ROLES)
def test_each_method_is_refused_exactly_where_the_role_has_no_right(
    role: str, interface: str, everywhere: bool, protected: Protected
) -> None:
    found = table(protected, role, interface, everywhere=everywhere)

    refused = {method for method, code in found.items() if code == DENIED}
    assert refused == {
        method for method in found if not is_allowed(interface, method, role, everywhere=everywhere)
    }
    assert len(found) >= 5


# --- what names several queues or topics, or lists them -------------------------------------------


def refused_by(call: Any) -> str:
    with pytest.raises(PermissionDenied) as caught:
        call()
    return str(caught.value)


@pytest.fixture(scope="module")
def admin(protected: Protected) -> Iterator[queueber.Client]:
    with protected.client("admin*") as client:
        for name in ("mine", "mine-2", "other"):
            client.create_queue(name)
            client.create_topic(name)
        yield client


def test_a_queue_or_topic_without_any_right_is_not_even_found(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("service") as client:
        for name in ("other", "not-there"):
            queue = client.queue(name, must_exist=True)
            topic = client.topic(name, must_exist=True)
            results = client.topic(f"queue/{name}/results")
            assert refused_by(queue.stats) == f"caller 'service' lacks any right on queue {name!r}"
            assert (
                refused_by(topic.describe) == f"caller 'service' lacks any right on topic {name!r}"
            )
            assert refused_by(results.describe).endswith(f"any right on queue {name!r}")


@pytest.mark.parametrize("role", ROLES)
def test_only_who_may_administer_creates_by_use(role: str, protected: Protected) -> None:
    may = Action.ADMINISTER in ROLES[role]
    with protected.client(role) as client:
        uses: dict[str, Callable[[], object]] = {
            f"queue 'mine-new-{role}'": lambda: client.queue(f"mine-new-{role}").stats(),
            f"topic 'mine-new-{role}'": lambda: client.topic(f"mine-new-{role}").describe(),
        }
        for what, use in uses.items():
            if may:
                use()
            else:
                assert refused_by(use) == (
                    f"{what} does not exist, and caller {role!r} lacks 'administer' on it to "
                    "create it"
                )


def test_a_publish_needs_the_right_on_every_topic(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("producer") as client:
        client.publish({"mine": [b"a"], "mine-2": [b"b"]})

        wrong = refused_by(lambda: client.publish({"mine": [b"a"], "other": [b"b"]}))
        missing = refused_by(lambda: client.publish({"mine": [b"a"], "mine-x": [b"b"]}))

    assert wrong == "caller 'producer' lacks 'add' on topic 'other'"
    assert missing.startswith("topic 'mine-x' does not exist, and caller 'producer' lacks")
    assert admin.topic("mine").describe().partitions[0].next_offset == 1


def test_a_publish_that_closes_the_topic_needs_the_right_to_close(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("producer") as client, protected.client("dba") as dba:
        topic = client.topic("mine-2", must_exist=True)
        refused = refused_by(lambda: topic.publish([b"last"], close=True))
        dba.create_topic("mine-closing")
        dba.topic("mine-closing").publish([b"last"], close=True)

    assert refused == "caller 'producer' lacks 'administer' on topic 'mine-2'"
    assert not admin.topic("mine-2").describe().is_closed
    assert admin.topic("mine-closing").describe().is_closed


def test_calls_together_need_every_right_and_else_do_nothing(
    protected: Protected, admin: queueber.Client
) -> None:
    admin.queue("mine").add(b"work")
    with protected.client("worker") as worker, protected.client("service") as service:
        lease = worker.queue("mine", must_exist=True).poll(lease=60)
        (item,) = lease

        def finish(client: queueber.Client, queue: str, topic: str) -> None:
            with client.together() as steps:
                steps.complete(item)
                steps.add(queue, [b"next"])
                steps.publish(topic, [b"done"])

        assert "lacks 'add' on topic 'mine-2'" in refused_by(
            lambda: finish(worker, "mine-2", "mine-2")
        )
        assert "lacks 'add' on queue 'other'" in refused_by(
            lambda: finish(service, "other", "mine-2")
        )
        assert admin.queue("mine").stats().leased == 1
        finish(service, "mine-2", "mine-2")

    assert admin.queue("mine-2").stats().ready == 1


def test_lists_show_what_the_caller_may_read(protected: Protected, admin: queueber.Client) -> None:
    with protected.client("reader") as reader, protected.client("producer") as producer:
        queues = [each.name for each in reader.queues()]
        topics = list(reader.topics())

        assert {"mine", "mine-2"} <= set(queues)
        assert {"mine", "mine-2"} <= set(topics)
        assert all(name.startswith("mine") for name in [*queues, *topics])
        assert list(reader.topics("mine-2")) == ["mine-2"]
        assert list(reader.topics("other")) == []
        assert producer.queues() == []
        assert list(producer.topics()) == []
    assert {"default", "mine", "other"} <= {each.name for each in admin.queues()}


def test_a_subscription_without_a_group_is_a_read_and_with_one_is_work(
    protected: Protected, admin: queueber.Client
) -> None:
    admin.topic("mine").publish([b"message"])
    with protected.client("reader") as reader, protected.client("worker") as worker:

        def first(client: queueber.Client, group: str | None = None) -> bytes:
            with client.topic("mine", must_exist=True).subscribe(group=group) as subscription:
                return next(iter(subscription)).payload

        assert first(reader)
        assert first(worker, "g")
        with_group = refused_by(lambda: first(reader, "g"))
        without = refused_by(lambda: first(worker))

    assert with_group == "caller 'reader' lacks 'work' on topic 'mine'"
    assert without == "caller 'worker' lacks 'read' on topic 'mine'"


def test_a_group_that_fills_a_queue_needs_rights_on_both(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("worker") as worker, protected.client("admin") as own:

        def bridge(client: queueber.Client) -> None:
            client.topic("mine", must_exist=True).create_group("b", kind="queue", queue="other")

        assert refused_by(lambda: bridge(worker)).endswith("lacks 'administer' on topic 'mine'")
        assert refused_by(lambda: bridge(own)).endswith("lacks 'add' on queue 'other'")


def test_a_fork_and_an_alias_are_names_that_the_caller_must_administer(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("admin") as own:
        fork = refused_by(lambda: own.topic("mine", must_exist=True).fork("theirs"))
        alias = refused_by(lambda: own.create_topic("mine-aliased", alias="theirs"))
        later = refused_by(lambda: own.configure_topic("mine", alias="theirs"))

    assert fork == "caller 'admin' lacks 'administer' on topic 'theirs'"
    assert alias == later == fork
    assert "theirs" not in set(admin.topics())


def test_rights_on_an_alias_are_those_on_the_topic(
    protected: Protected, admin: queueber.Client
) -> None:
    admin.create_topic("other-real", alias="mine-alias")
    admin.create_topic("mine-real", alias="other-alias")
    with protected.client("producer") as producer:
        producer.publish({"other-alias": [b"a"]})

        refused = refused_by(lambda: producer.publish({"mine-alias": [b"a"]}))

    assert refused == "caller 'producer' lacks 'add' on topic 'other-real'"


def test_a_group_as_a_queue_has_the_rights_of_its_topic(
    protected: Protected, admin: queueber.Client
) -> None:
    admin.topic("mine-2").create_group("shared", kind="shared")
    with protected.client("worker") as worker, protected.client("reader") as reader:
        worker.topic("mine-2", must_exist=True).group("shared").poll()
        reader.topic("mine-2", must_exist=True).group("shared").stats()

        refused = refused_by(lambda: reader.topic("mine-2", must_exist=True).group("shared").poll())

    assert refused == "caller 'reader' lacks 'work' on topic 'mine-2'"


def test_results_are_read_with_the_rights_on_their_queue(
    protected: Protected, admin: queueber.Client
) -> None:
    with protected.client("reader") as reader, protected.client("producer") as producer:
        assert len(list(reader.topic("queue/mine/results").read())) <= 1

        refused = refused_by(lambda: producer.topic("queue/mine/results").read())

    assert refused == "caller 'producer' lacks 'read' on queue 'mine'"


def test_everybody_learns_who_they_are(protected: Protected) -> None:
    for role in ROLES:
        with protected.client(role) as client:
            grant = queueber.Grant(role, ("mine*",), ("mine*",))
            assert client.who_am_i() == queueber.CallerInfo(role, (grant,), 0)
            assert client.server().is_protected
