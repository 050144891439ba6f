"""The blocking face and the awaited one have the same words."""

import inspect

import pytest

import queueber

TWINS = [
    (queueber.Client, queueber.AsyncClient),
    (queueber.Queue, queueber.AsyncQueue),
    (queueber.Lease, queueber.AsyncLease),
    (queueber.Producer, queueber.AsyncProducer),
    (queueber.Snapshot, queueber.AsyncSnapshot),
    (queueber.Load, queueber.AsyncLoad),
    (queueber.Topic, queueber.AsyncTopic),
    (queueber.TopicProducer, queueber.AsyncTopicProducer),
    (queueber.Subscription, queueber.AsyncSubscription),
    (queueber.Received, queueber.AsyncReceived),
    (queueber.Together, queueber.AsyncTogether),
]

ONLY_BLOCKING = {"add_soon", "publish_soon"}
"""Who awaits has tasks for this; a topic has `publish_soon` for who needs none."""
OTHER_WORDS = {"close": "aclose"}
NOT_AWAITED = {
    "name", "producer", "queue", "ids", "items", "id", "epoch", "sequence", "snapshot", "ref",
    "is_committed", "topic", "group", "together", "subscribe", "is_over", "attempt", "attributes",
    "key", "lease", "offset", "partition", "payload", "reference", "timestamp", "timestamp_ms",
    "ack_soon", "deliveries", "ack_error", "publish_soon",
}  # fmt: skip
STEPS = {"ack", "ack_offsets", "add", "complete", "fail", "publish"}
"""Of `together`: they are sent when the block ends."""


def words(face: type) -> dict[str, object]:
    """The public methods and properties of a class, inherited ones too; not its slots."""
    public = {name: getattr(face, name) for name in dir(face) if not name.startswith("_")}
    return {name: each for name, each in public.items() if not inspect.ismemberdescriptor(each)}


def signature(method: object) -> str:
    """Without what the two may differ in: a lease is an async one, an iterator too."""
    told = str(inspect.signature(method))  # type: ignore[arg-type]
    return told.replace("Async", "").replace("async_", "")


@pytest.mark.parametrize(("blocking", "awaited"), TWINS, ids=lambda face: face.__name__)
def test_both_faces_have_the_same_methods_with_the_same_arguments(
    blocking: type, awaited: type
) -> None:
    theirs = words(awaited)
    ours = {
        OTHER_WORDS.get(name, name) if name not in theirs else name: each
        for name, each in words(blocking).items()
    }

    assert set(ours) - (ONLY_BLOCKING - set(theirs)) == set(theirs)
    for name, method in theirs.items():
        if not isinstance(method, property):
            assert signature(method) == signature(ours[name]), name


@pytest.mark.parametrize(("blocking", "awaited"), TWINS, ids=lambda face: face.__name__)
def test_every_call_of_the_awaited_face_is_awaited_and_of_the_other_none(
    blocking: type, awaited: type
) -> None:
    def is_awaited(method: object) -> bool:
        return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)

    assert not any(is_awaited(method) for method in words(blocking).values())
    waits = {name for name, method in words(awaited).items() if not is_awaited(method)}
    assert waits <= NOT_AWAITED | (STEPS if awaited is queueber.AsyncTogether else set())


@pytest.mark.parametrize("face", [face for twins in TWINS for face in twins])
def test_every_word_is_explained(face: type) -> None:
    unexplained = {name for name, each in words(face).items() if not inspect.getdoc(each)}

    assert unexplained <= {"name", "id", "epoch", "ids", "items", "ref", "partition", "topic"}
