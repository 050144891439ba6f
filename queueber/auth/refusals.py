"""What a caller is told that lacks a right."""

from collections.abc import Iterable

from queueber.auth.roles import Action
from queueber.errors import PermissionDenied


class Denied(PermissionDenied):
    """Knows what it is about, for the audit log."""

    def __init__(self, text: str, *, kind: str = "", name: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        """Queue or topic; empty: the server."""
        self.name = name


def denied(caller: str, actions: Iterable[Action], kind: str, name: str) -> Denied:
    """`kind` is queue or topic; empty: the right is one on the server."""
    rights = " or ".join(sorted(repr(each.value) for each in actions)) or "any right"
    where = f"on {kind} {name!r}" if kind else "on the server (of a grant for all, '*')"
    return Denied(f"caller {caller!r} lacks {rights} {where}", kind=kind, name=name)


def may_not_create(caller: str, kind: str, name: str) -> Denied:
    return Denied(
        f"{kind} {name!r} does not exist, and caller {caller!r} lacks {Action.ADMINISTER.value!r} "
        "on it to create it",
        kind=kind,
        name=name,
    )
