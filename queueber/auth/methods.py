"""Which right each method of the wire needs: the one table. A method that is not here is refused.

`scope` says what the right must be on: the queue or topic whose capability is called, the one that
the call names, or the server. A call that names several, or lists them, checks each itself.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache

from queueber.auth.roles import Action


class Scope(Enum):
    OWN = "the queue or topic of the capability"
    QUEUE = "the queue that the call names"
    TOPIC = "the topic that the call names"
    SERVER = "the server"
    EACH = "every queue and topic in the call or its answer"
    ANY_CALLER = "nothing: every caller may"
    HOLDER = "nothing: whoever was given the capability may"
    ANYBODY = "nothing: also those who have not authenticated may"


@dataclass(frozen=True, slots=True)
class Rule:
    scope: Scope
    actions: frozenset[Action] = frozenset()
    """One of them is enough."""


def _rules(scope: Scope, methods: str, *actions: Action) -> dict[str, Rule]:
    return dict.fromkeys(methods.split(), Rule(scope, frozenset(actions)))


_QUEUE = (
    # A callback adds to a queue that the call names.
    _rules(Scope.OWN, "add whenComplete", Action.ADD)
    | _rules(
        Scope.OWN,
        "poll pollMany withdrawPoll extend extendMany remove removeMany complete fail release "
        "ackResults",
        Action.WORK,
    )
    # Workers look at their queue before they begin.
    | _rules(Scope.OWN, "stats", Action.READ, Action.WORK)
    | _rules(
        Scope.OWN,
        "receipt waitBatch readResults listReaders peek listLoads openSnapshot scanSnapshot "
        "closeSnapshot splitSnapshot listLeases listBatches callback findItem",
        Action.READ,
    )
    | _rules(
        Scope.OWN,
        "dropReader cancel cancelKey cancelBatch purge redrive pause resume forgetBatch "
        "forgetBatches reschedule",
        Action.OPERATE,
    )
    | _rules(Scope.OWN, "beginLoad stageFile finishPart commitLoad abortLoad", Action.LOAD)
)

_SERVICE = (
    _rules(Scope.ANYBODY, "hello authenticate")
    | _rules(Scope.ANY_CALLER, "describe whoAmI issueTokens")
    | _rules(Scope.EACH, "queue topic listQueues listTopics publish together histories")
    # A schedule belongs to a queue, which its call does not name.
    | _rules(
        Scope.EACH,
        "putSchedule listSchedules describeSchedule pauseSchedule resumeSchedule runSchedule "
        "removeSchedule",
    )
    | _rules(Scope.QUEUE, "createQueue configureQueue deleteQueue", Action.ADMINISTER)
    | _rules(Scope.TOPIC, "createTopic configureTopic deleteTopic", Action.ADMINISTER)
    | _rules(Scope.TOPIC, "describeTopic", Action.READ)
    | _rules(Scope.SERVER, "metrics", Action.OBSERVE)
    | _rules(Scope.SERVER, "beginBackup readBackup endBackup", Action.BACKUP)
)

_TOPIC = (
    _rules(Scope.OWN, "publish", Action.ADD)
    | _rules(Scope.OWN, "ack createGroup consume withdrawConsume", Action.WORK)
    # Without a group it is a read that goes on; with one it is the work of a consumer.
    | _rules(Scope.OWN, "subscribe", Action.WORK, Action.READ)
    | _rules(Scope.OWN, "read describe find listGroups describeGroup", Action.READ)
    | _rules(Scope.OWN, "trim deleteGroup resetGroup pauseGroup resumeGroup", Action.OPERATE)
    | _rules(Scope.OWN, "listSchemas", Action.READ)
    # Who publishes checks messages against it.
    | _rules(Scope.OWN, "readSchema", Action.ADD, Action.READ)
    | _rules(Scope.OWN, "close fork setSchema addSource dropSource", Action.ADMINISTER)
    # The group has the rights of its topic.
    | _rules(Scope.HOLDER, "group")
)

METHODS: dict[str, dict[str, Rule]] = {
    "Queue": _QUEUE,
    "Service": _SERVICE,
    "Topic": _TOPIC,
    "Subscription": _rules(Scope.HOLDER, "grant ack settle close"),
    # The server calls it.
    "Consumer": _rules(Scope.HOLDER, "deliver heartbeat ended"),
}

AUDITED_ACTIONS = frozenset({Action.OPERATE, Action.ADMINISTER, Action.BACKUP})
"""Calls that need one of these are administrative acts."""

_NOT_AUDITED = {"readBackup"}
"""One of the many calls of a backup that begins and ends in the audit log."""


def is_audited(method: str, rule: Rule) -> bool:
    return bool(rule.actions & AUDITED_ACTIONS) and method not in _NOT_AUDITED


@cache
def allowed_methods(
    interface: str, actions: frozenset[Action], *, with_audited: bool = True
) -> frozenset[str]:
    """The methods of a capability that need no further check, with these actions on its own queue
    or topic.

    There are few sets of actions, so few answers are kept.
    """
    free = {Scope.EACH, Scope.ANY_CALLER, Scope.HOLDER, Scope.ANYBODY}
    return frozenset(
        method
        for method, rule in METHODS[interface].items()
        if rule.scope in free or (rule.scope is Scope.OWN and rule.actions & actions)
        if with_audited or not is_audited(method, rule)
    )
