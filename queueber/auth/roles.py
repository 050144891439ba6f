"""Roles: the one table of what each may do. A role counts where the patterns of a grant match."""

from enum import StrEnum


class Action(StrEnum):
    """What a caller may do with a queue or a topic; the last two are about the server itself."""

    ADD = "add"
    WORK = "work"
    READ = "read"
    OPERATE = "operate"
    LOAD = "load"
    ADMINISTER = "administer"
    OBSERVE = "observe"
    BACKUP = "backup"


SERVER_ACTIONS = frozenset({Action.OBSERVE, Action.BACKUP})
"""Only a grant for every queue and every topic gives these."""

ACTION_MEANINGS: dict[Action, str] = {
    Action.ADD: "add items, publish messages",
    Action.WORK: "poll, extend, complete, fail and release items; consume and acknowledge messages",
    Action.READ: "statistics, peek, receipts, results, snapshots, messages, groups, leases, "
    "schedules",
    Action.OPERATE: "pause, resume, cancel, reschedule, purge, redrive, trim, reset and delete "
    "groups; pause, resume and run schedules",
    Action.LOAD: "load items in bulk, as Spark does",
    Action.ADMINISTER: "create, configure, close, fork and delete queues and topics; create, "
    "change and remove schedules",
    Action.OBSERVE: "metrics of the server",
    Action.BACKUP: "back up the store",
}

_PRODUCER = frozenset({Action.ADD})
_WORKER = frozenset({Action.WORK})
_READER = frozenset({Action.READ, Action.OBSERVE})
_OPERATOR = frozenset({Action.READ, Action.OPERATE, Action.OBSERVE})
_LOADER = frozenset({Action.LOAD, Action.ADD, Action.READ})
_ADMIN = frozenset(Action)
_SERVICE = _PRODUCER | _WORKER | _READER

ROLES: dict[str, frozenset[Action]] = {
    "producer": _PRODUCER,
    "worker": _WORKER,
    "reader": _READER,
    "operator": _OPERATOR,
    "loader": _LOADER,
    "admin": _ADMIN,
    # The roles of KalamDB, each a set of ours.
    "service": _SERVICE,
    "dba": _SERVICE | _OPERATOR | _LOADER | {Action.ADMINISTER},
    "system": _ADMIN,
    "user": _PRODUCER,
}
