"""What a server measures, asked over a connection."""

import pytest

import queueber
from queueber.limits import HISTORY_NAMES_MAX
from queueber.rpc import protection  # noqa: F401  all capabilities are known once it is imported
from queueber.rpc.calls import METHOD_NAMES, Methods
from queueber.schema import wire
from queueber.service.measures.metrics import METRICS
from queueber.testing import ServerProcess

INTERFACES = {
    "Queue": wire.Queue,
    "Service": wire.Service,
    "Topic": wire.Topic,
    "Subscription": wire.Subscription,
}


def values_of(client: queueber.Client, metric: str) -> dict[tuple[str, ...], float]:
    (family,) = [each for each in client.metrics() if each.name == metric]
    assert family.metric == METRICS[metric]
    return {sample.label_values: sample.value for sample in family.samples}


def test_calls_are_counted_by_method_and_code(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        before = values_of(client, "queueber_calls_total")
        queue = client.queue("measured-calls")
        queue.add([b"a"])
        with pytest.raises(queueber.NotFound):
            client.queue("measured-missing", must_exist=True).stats()
        after = values_of(client, "queueber_calls_total")

    assert after["Queue.add", "OK"] - before.get(("Queue.add", "OK"), 0) == 1
    refused = ("Service.queue", "NOT_FOUND")
    assert after[refused] - before.get(refused, 0) == 1


def test_server_answers_with_every_metric_of_the_table(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        families = client.metrics()

    assert {family.name for family in families} == set(METRICS)
    assert all(family.metric == METRICS[family.name] for family in families)


def test_durations_count_as_often_as_calls(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        client.queue("measured-durations").add([b"a"])
        families = {family.name: family for family in client.metrics()}

    counted = {
        sample.label_values[0]: sample.value
        for sample in families["queueber_calls_total"].samples
        if sample.label_values[1] == "OK"
    }
    for sample in families["queueber_call_duration_seconds"].samples:
        assert sum(sample.values[1:]) == counted.get(sample.label_values[0], 0)


def test_history_is_empty_of_what_the_server_does_not_know(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        found = client.histories(["never-made"], ["nor-this"], span="day", points=3)

    nothing = queueber.History()
    assert found == queueber.Histories({"never-made": nothing}, {"nor-this": nothing})


def test_more_names_than_a_call_takes_are_asked_for_in_several(server: ServerProcess) -> None:
    names = [f"never-made-{number}" for number in range(2 * HISTORY_NAMES_MAX + 1)]
    with queueber.connect(server.address) as client:
        found = client.histories(names)

    assert list(found.queues) == names


def test_wrong_arguments_are_refused(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        with pytest.raises(queueber.InvalidArgument, match="span: 'week' is unknown; give one of"):
            client.histories(["q"], span="week")
        with pytest.raises(queueber.InvalidArgument, match="points"):
            client.histories(["q"], points=-1)


def capabilities(kind: type[Methods] = Methods) -> set[type[Methods]]:
    return {kind}.union(*[capabilities(each) for each in kind.__subclasses__()])


def test_every_method_is_measured_by_its_name_in_the_schema() -> None:
    named = {tuple(name.split(".")) for name in METHOD_NAMES.values()}

    assert {interface for interface, _ in named} == set(INTERFACES)
    for interface, method in named:
        assert method in INTERFACES[interface].schema.method_names, (interface, method)
    for kind in capabilities():
        for name, method in vars(kind).items():
            assert not name.endswith("_context") or method.__wrapped__ in METHOD_NAMES, name
