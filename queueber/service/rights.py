"""What the caller of a session may do, where that depends on what exists or on several names.

On a server that is not protected there is no caller, and everything is allowed.
"""

from collections.abc import Callable
from typing import TypeAlias

from queueber.auth.refusals import denied, may_not_create
from queueber.auth.roles import Action
from queueber.errors import ResourceExhausted
from queueber.limits import TOPIC_LIST_MAX
from queueber.service.session import Session

Names: TypeAlias = Callable[[str, str, int], list[str]]
"""Names that begin with a text, after another name, up to a limit."""

_EXAMINED_MAX = 20 * TOPIC_LIST_MAX
"""Names that one call looks at to find those that its caller may see."""


def check_right(session: Session, action: Action, kind: str, name: str) -> None:
    """`kind` is queue or topic."""
    caller = session.caller
    if caller is not None and not caller.may(action, kind, name):
        raise denied(caller.name, [action], kind, name)


def check_any_right(session: Session, kind: str, name: str) -> None:
    """Whoever may do nothing with a queue or topic does not learn whether it exists."""
    caller = session.caller
    if caller is not None:
        actions = caller.queues if kind == "queue" else caller.topics
        if not actions.on(name):
            raise denied(caller.name, [], kind, name)


def check_may_create(
    session: Session, kind: str, name: str, count: Callable[[str, int], int]
) -> None:
    """A queue or topic does not exist, and would be created. `count` says how many names begin
    with a text, up to a limit."""
    caller = session.caller
    if caller is None:
        return
    if not caller.may(Action.ADMINISTER, kind, name):
        raise may_not_create(caller.name, kind, name)
    if session.usage is not None:
        prefixes = (caller.queues if kind == "queue" else caller.topics).prefixes(Action.ADMINISTER)
        session.usage.check_may_create(
            kind, lambda limit: sum(count(prefix, limit) for prefix in prefixes)
        )


def audit_creation(session: Session, kind: str, name: str) -> None:
    """A call that is about something else has created a queue or topic."""
    audit(session, "create", kind, name)


def audit(session: Session, act: str, kind: str, name: str) -> None:
    """Tell the audit log of an act whose rights the service has checked."""
    if session.audit is not None:
        session.audit.act(dict(session.who), act, {kind: name}, "ok")


def sees(session: Session, kind: str) -> Callable[[str], bool] | None:
    """Whether a list shows a name to the caller; None: it shows all."""
    caller = session.caller
    if caller is None:
        return None
    actions = caller.queues if kind == "queue" else caller.topics
    return lambda name: Action.READ in actions.on(name)


def seen_topics(
    session: Session, names: Names, prefix: str, after: str, limit: int
) -> tuple[list[str], bool]:
    """Up to `limit` names of topics that the caller may see, in order, and whether there may be
    more."""
    is_seen, caller = sees(session, "topic"), session.caller
    if is_seen is None or caller is None:
        found = names(prefix, after, limit + 1)
        return found[:limit], len(found) > limit
    found, examined = [], 0
    for granted in caller.topics.prefixes(Action.READ):
        longer = max(granted, prefix, key=len)
        if not longer.startswith(granted) or not longer.startswith(prefix):
            continue
        last, page_is_full = after, True
        while page_is_full and len(found) <= limit:
            if examined >= _EXAMINED_MAX:
                return _enough(found, examined), True
            page = names(longer, last, TOPIC_LIST_MAX)
            found += [name for name in page if is_seen(name)]
            examined += len(page)
            page_is_full = len(page) == TOPIC_LIST_MAX
            last = page[-1] if page else last
    return found[:limit], len(found) > limit


def _enough(found: list[str], examined: int) -> list[str]:
    # A page without names would not say where to go on.
    if not found:
        raise ResourceExhausted(
            f"prefix: {examined} topics were looked at, the limit, and the caller may see none of "
            "them; give a longer prefix"
        )
    return found
