"""Rights that depend on what exists: creating, listing, quotas of queues and topics."""

from collections.abc import Callable

import pytest

from queueber.auth.callers import Caller
from queueber.auth.quotas import QuotaLimits, Usage
from queueber.auth.roles import Action
from queueber.clock import ManualClock
from queueber.errors import PermissionDenied, ResourceExhausted
from queueber.limits import TOPIC_LIST_MAX
from queueber.model import Grant, NewMessages, On, Publication, Source, TopicConfig
from queueber.service.rights import check_any_right, check_right, seen_topics
from queueber.service.session import Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.service_rig import ServiceRig, on_service


def session_of(rig: ServiceRig, *grants: Grant, limits: QuotaLimits | None = None) -> Session:
    session = Session(rig.admission, AnswerBudget(), address="10.0.0.1:5")
    session.caller = Caller("c", grants)
    if limits is not None:
        session.usage = Usage(limits, rig.clock)
    return session


@on_service()
async def test_a_session_without_a_caller_may_do_everything(rig: ServiceRig) -> None:
    check_right(rig.session, Action.BACKUP, "queue", "q")
    check_any_right(rig.session, "topic", "t")


@on_service()
async def test_a_refusal_names_the_right_and_what_it_is_on(rig: ServiceRig) -> None:
    session = session_of(rig, Grant("worker", ("a*",), ()))

    with pytest.raises(PermissionDenied, match=r"^caller 'c' lacks 'add' on queue 'a1'$"):
        check_right(session, Action.ADD, "queue", "a1")
    with pytest.raises(PermissionDenied, match=r"^caller 'c' lacks any right on topic 'a1'$"):
        check_any_right(session, "topic", "a1")


@on_service()
async def test_the_quota_counts_queues_under_the_names_of_the_caller(rig: ServiceRig) -> None:
    session = session_of(rig, Grant("admin", ("t1-*",)), limits=QuotaLimits(queues=2))
    queues = rig.service.queues
    await queues.open_queue("t2-a", rig.session, must_exist=False)
    await queues.open_queue("t1-a", rig.session, must_exist=False)

    await queues.open_queue("t1-b", session, must_exist=False)
    with pytest.raises(ResourceExhausted, match=r"there are 2 queues .*; its limit is 2"):
        queues.open_queue("t1-c", session, must_exist=False)
    with pytest.raises(ResourceExhausted):
        queues.create_queue("t1-c", rig.service.queues.stats(rig.queue).settings, session)

    await queues.open_queue("t1-a", session, must_exist=False)  # exists
    await queues.delete_queue("t1-a", session)
    rig.clock.advance(1000)
    await queues.open_queue("t1-c", session, must_exist=False)


@on_service()
async def test_the_quota_counts_topics_that_one_call_would_create(rig: ServiceRig) -> None:
    session = session_of(rig, Grant("admin", (), ("t1-*",)), limits=QuotaLimits(topics=2))
    to = [Publication(f"t1-{at}", NewMessages([b"x"])) for at in range(3)]

    with pytest.raises(ResourceExhausted, match="there are 2 topics"):
        rig.service.publishing.publish(session, to)
    assert rig.service.topics.list_topics("", "", 0, rig.session) == ([], False)

    rig.clock.advance(1000)
    await rig.service.publishing.publish(session, to[:2])
    assert rig.service.topics.list_topics("", "", 0, rig.session) == (["t1-0", "t1-1"], False)


@on_service()
async def test_a_topic_that_is_gone_is_not_created_again_by_who_may_not(rig: ServiceRig) -> None:
    """Between the check of a publish and its write, somebody deletes the topic."""
    session = session_of(rig, Grant("producer", (), ("*",)))
    await rig.service.topics.create_topic("t", TopicConfig(), rig.session)
    publication = Publication("t", NewMessages([b"x"]))

    rig.service.publishing.check_rights(session, [publication])

    assert not publication.may_create


def pages(names: list[str]) -> Callable[[str, str, int], list[str]]:
    def page(prefix: str, after: str, limit: int) -> list[str]:
        return [name for name in sorted(names) if name.startswith(prefix) and name > after][:limit]

    return page


@on_service()
async def test_lists_of_topics_are_pages_of_what_the_caller_may_see(rig: ServiceRig) -> None:
    names = [f"{letter}-{at}" for letter in "abc" for at in range(4)]
    session = session_of(rig, Grant("reader", (), ("a-*", "c-1", "c-3*")))

    assert seen_topics(session, pages(names), "", "", 3) == (["a-0", "a-1", "a-2"], True)
    assert seen_topics(session, pages(names), "", "a-2", 3) == (["a-3", "c-1", "c-3"], False)
    assert seen_topics(session, pages(names), "c", "", 3) == (["c-1", "c-3"], False)
    assert seen_topics(session, pages(names), "b", "", 3) == ([], False)
    nobody = session_of(rig, Grant("producer", (), ("*",)))
    assert seen_topics(nobody, pages(names), "", "", 3) == ([], False)


@on_service()
async def test_a_list_looks_at_a_bounded_number_of_topics(rig: ServiceRig) -> None:
    names = [f"{at:06}" for at in range(25 * TOPIC_LIST_MAX)]
    session = session_of(rig, Grant("reader", (), ("*9999", "*x")))

    found, more = seen_topics(session, pages(names), "", "", 10)
    with pytest.raises(ResourceExhausted, match="prefix: 20000 topics were looked at, the limit"):
        seen_topics(session_of(rig, Grant("reader", (), ("*x",))), pages(names), "", "", 10)

    assert (found, more) == (["009999", "019999"], True)


def test_a_quota_by_a_clock_that_stands_still_stays_used_up() -> None:
    usage = Usage(QuotaLimits(topics=1), ManualClock())

    usage.check_may_create("topic", lambda _: 0)

    with pytest.raises(ResourceExhausted):
        usage.check_may_create("topic", lambda _: 0)


@on_service()
async def test_a_source_needs_the_right_to_read_its_queue(rig: ServiceRig) -> None:
    session = session_of(rig, Grant("admin", ("mine",), ("t",)))
    for name in ("mine", "theirs"):
        await rig.service.queues.open_queue(name, rig.session, must_exist=False)
    await rig.service.topics.create_topic("t", TopicConfig(), rig.session)
    topic = await rig.service.topics.open_topic("t", session, must_exist=True)

    with pytest.raises(PermissionDenied, match="lacks 'read' on queue 'theirs'"):
        rig.service.routes.add_source(topic, Source("theirs", On.INSERT))
    assert await rig.service.routes.add_source(topic, Source("mine", On.INSERT))
