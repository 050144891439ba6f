"""Callers: what grants add up to."""

from queueber.auth.callers import _CACHED_NAMES_MAX, Caller, everybody
from queueber.auth.roles import ROLES, Action
from queueber.model import CallerInfo, Grant


def test_grants_add_up_where_their_patterns_match() -> None:
    caller = Caller("c", [Grant("producer", ("a-*",), ()), Grant("worker", ("a-*", "b"), ("t",))])

    assert caller.actions_on_queue("a-1") == {Action.ADD, Action.WORK}
    assert caller.actions_on_queue("b") == {Action.WORK}
    assert caller.actions_on_queue("c") == frozenset()
    assert caller.actions_on_topic("t") == {Action.WORK}
    assert caller.actions_on_topic("a-1") == frozenset()
    assert caller.may(Action.ADD, "queue", "a-1")
    assert not caller.may(Action.ADD, "topic", "t")


def test_actions_on_the_server_need_a_grant_for_everything() -> None:
    everything = Grant("admin", ("*",), ("*",))

    assert Caller("c", [everything]).server_actions == {Action.OBSERVE, Action.BACKUP}
    assert Caller("c", [Grant("reader", ("*",), ("*",))]).server_actions == {Action.OBSERVE}
    for some in (
        Grant("admin", ("*",)),
        Grant("admin", (), ("*",)),
        Grant("admin", ("a*",), ("*",)),
    ):
        assert Caller("c", [some]).server_actions == frozenset()
    # Two halves are no whole: each grant stands for itself.
    halves = [Grant("admin", ("*",)), Grant("admin", (), ("*",))]
    assert Caller("c", halves).server_actions == frozenset()


def test_a_queue_never_has_actions_of_the_server() -> None:
    assert Caller("c", [Grant("admin", ("*",), ("*",))]).actions_on_queue("q") == (
        frozenset(Action) - {Action.OBSERVE, Action.BACKUP}
    )


def test_what_is_remembered_of_names_is_bounded() -> None:
    caller = Caller("c", [Grant("admin", ("*",))])

    for at in range(_CACHED_NAMES_MAX + 10):
        caller.actions_on_queue(f"q{at}")
    caller.actions_on_queue("x" * 100_000)

    assert len(caller.queues._known) <= _CACHED_NAMES_MAX
    assert "x" * 100_000 not in caller.queues._known


def test_prefixes_are_those_that_no_other_covers() -> None:
    grants = [Grant("admin", ("a-*", "a-b-*", "c", "*x")), Grant("reader", ("z*",))]

    assert Caller("c", grants[:1]).queues.prefixes(Action.ADMINISTER) == [""]
    few = [Grant("admin", ("a-*", "a-b-*", "c")), Grant("reader", ("z*",))]
    assert Caller("c", few).queues.prefixes(Action.ADMINISTER) == ["a-", "c"]
    assert Caller("c", few).queues.prefixes(Action.READ) == ["a-", "c", "z"]


def test_a_caller_says_who_it_is_and_shows_nothing_else() -> None:
    grant = Grant("worker", ("q",))
    caller = Caller("c", [grant], 5, origin="a secret of some kind")

    assert caller.info == CallerInfo("c", (grant,), 5)
    assert repr(caller) == "<Caller 'c'>"


def test_on_a_server_without_protection_everybody_may_do_everything() -> None:
    caller = everybody()

    assert caller.actions_on_queue("q") | caller.server_actions == ROLES["admin"]
