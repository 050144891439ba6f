"""Bugs of routes that are planted on purpose: the simulation must find each of them."""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue import changes, expire, purge
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.routes.events import EventLog, Gathered
from queueber.engine.routes.queue_routes import QueueRoutes
from queueber.engine.routes.route import Route
from queueber.engine.routes.routes import Routes
from tests.faults.planted_bugs import Bug, Patch


def publish_no_event_of_items_lost_together(patch: Patch) -> None:
    patch.setattr(expire, "_moves", lambda *_: [])


def publish_events_of_releases_twice(patch: Patch) -> None:
    moved = QueueRoutes.moved

    def twice(routes: QueueRoutes, tx: Any, moves: Sequence[Moved]) -> None:
        moved(routes, tx, moves)
        moved(routes, tx, [each for each in moves if each.change is Change.RELEASED])

    patch.setattr(QueueRoutes, "moved", twice)


def publish_events_in_a_second_write(patch: Patch) -> None:
    append = EventLog._append

    def later(log: EventLog, tx: Transaction[Any], gathered: Gathered) -> None:
        tx.after_write(second, log, tx._kernel, tx.now_ms, gathered)

    def second(log: EventLog, kernel: Any, now_ms: int, gathered: Gathered) -> None:
        tx = Transaction(kernel, now_ms, None)
        append(log, tx, gathered)
        tx.commit()

    patch.setattr(EventLog, "_append", later)


def keep_routes_in_memory_only(patch: Patch) -> None:
    added = QueueRoutes.added

    def forgotten(routes: QueueRoutes, tx: Any, *arguments: Any) -> None:
        tx.batch.delete_range(Family.ROUTES, tx.prefix, tx.prefix + b"\xff")
        added(routes, tx, *arguments)

    patch.setattr(QueueRoutes, "added", forgotten)


def tell_of_purges_as_if_they_were_cancellations(patch: Patch) -> None:
    """Both end an item, and count as one total: only the calls tell them apart."""
    gone = changes.gone
    patch.setattr(purge, "gone", lambda _, *arguments: gone(Change.CANCELLED, *arguments))


def tell_of_releases_of_other_items(patch: Patch) -> None:
    """Items of two releases, told with the names of each other: totals and lives are as before."""
    moved = QueueRoutes.moved
    told: dict[QueueRoutes, Moved] = {}

    def mixed_up(routes: QueueRoutes, tx: Any, moves: Sequence[Moved]) -> None:
        found = list(moves)
        for at, each in enumerate(found):
            if each.change is Change.RELEASED and each.run.count == 1:
                last = told.get(routes)
                told[routes] = each
                if last is not None and last.run.block == each.run.block:
                    found[at] = last
        moved(routes, tx, found)

    patch.setattr(QueueRoutes, "moved", mixed_up)


def go_on_publishing_for_dropped_sources(patch: Patch) -> None:
    def dropped(routes: Routes, places: list[Any]) -> None:
        for place in places:
            del routes._routes[place]

    patch.setattr(Routes, "_dropped", dropped)


def begin_with_an_added_source_at_the_next_one(patch: Patch) -> None:
    added = Routes._added

    def late(routes: Routes, place: Any, route: Route, queue: QueueState) -> None:
        if len(routes._routes) < _ROUTES_AT_FIRST:
            added(routes, place, route, queue)
        else:
            routes._routes[place] = route

    patch.setattr(Routes, "_added", late)


_ROUTES_AT_FIRST = 6


def ignore_filters(patch: Patch) -> None:
    patch.setattr(Route, "where", None)


def choose_partitions_by_the_key_alone(patch: Patch) -> None:
    patch.setattr(Route, "partition_text", lambda *_: None)


def tell_contents_without_attributes(patch: Patch) -> None:
    patch.setattr(Gathered, "has_room_for_attributes", lambda *_: False)


ROUTE_BUGS: list[Bug] = [
    tell_of_purges_as_if_they_were_cancellations,
    tell_of_releases_of_other_items,
    publish_no_event_of_items_lost_together,
    publish_events_of_releases_twice,
    publish_events_in_a_second_write,
    keep_routes_in_memory_only,
    go_on_publishing_for_dropped_sources,
    begin_with_an_added_source_at_the_next_one,
    ignore_filters,
    choose_partitions_by_the_key_alone,
    tell_contents_without_attributes,
]
