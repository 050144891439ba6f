"""What the holder of a capability may call, decided once when the capability is given out.

Most calls cost one lookup in a set. The others name a queue or topic, are administrative acts that
the audit log is told of, or are refused.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from queueber.auth.methods import METHODS, Rule, Scope, allowed_methods, is_audited
from queueber.auth.refusals import Denied, denied
from queueber.auth.roles import Action
from queueber.errors import QueueberError
from queueber.service.service import Service
from queueber.service.session import Session

_SUFFIX = "_context"
"""What the name of a handler's function has after that of the method."""


@cache
def _free_methods(
    interfaces: tuple[str, ...], actions: frozenset[Action], with_audited: bool
) -> frozenset[str]:
    """The functions of a handler that need no further look."""
    return frozenset(
        method + _SUFFIX
        for interface in interfaces
        for method in allowed_methods(interface, actions, with_audited=with_audited)
    )


@cache
def _rules_of(interfaces: tuple[str, ...]) -> Mapping[str, tuple[str, Rule]]:
    """By the name of a function: the method, and its rule."""
    return {
        method + _SUFFIX: (method, rule)
        for interface in interfaces
        for method, rule in METHODS[interface].items()
    }


class Act:
    """An administrative act that is under way."""

    def __init__(self, session: Session, method: str, kind: str, name: str) -> None:
        self._session = session
        self._method = method
        self._subject: dict[str, object] = {kind: name} if kind else {}

    def ended(self, error: Exception | None = None) -> None:
        if self._session.audit is None or isinstance(error, Denied):
            return  # a refusal is logged as such
        outcome = "ok" if error is None else getattr(error, "code", QueueberError.code)
        self._session.audit.act(dict(self._session.who), self._method, self._subject, outcome)


class Rights:
    """Of one capability."""

    def __init__(
        self,
        service: Service,
        session: Session,
        interfaces: tuple[str, ...],
        kind: str,
        name: str,
    ) -> None:
        """The capability is that of a queue or topic, which `kind` and `name` say."""
        self._service = service
        self._session = session
        self._rules = _rules_of(interfaces)
        self._kind = kind
        self._name = name
        caller = session.caller
        if caller is None:
            self.actions = frozenset(Action)
        elif kind == "queue":
            self.actions = caller.actions_on_queue(name)
        else:
            self.actions = caller.actions_on_topic(name)
        self.methods = _free_methods(interfaces, self.actions, session.audit is None)
        """The functions of the handler that need no further look."""

    def look(self, function: str, context: Any) -> Act | None:
        """Refuse the call, or say that it is an act for the audit log."""
        method, rule = self._rules[function]
        kind, name, actions = self._subject(rule, context)
        if rule.actions and not rule.actions & actions:
            raise denied(self._caller_name, rule.actions, kind, name)
        is_act = is_audited(method, rule)
        return Act(self._session, method, kind, name) if is_act else None

    def check(self, action: Action) -> None:
        """Refuse a call that needs a certain right on the capability's own queue or topic."""
        if action not in self.actions:
            raise denied(self._caller_name, [action], self._kind, self._name)

    @property
    def _caller_name(self) -> str:
        return self._session.caller.name if self._session.caller is not None else ""

    def _subject(self, rule: Rule, context: Any) -> tuple[str, str, frozenset[Action]]:
        """What the call is about, and the actions of the caller on that."""
        caller = self._session.caller
        everything = frozenset(Action)
        match rule.scope:
            case Scope.QUEUE:
                name = context.params.name
                return "queue", name, caller.actions_on_queue(name) if caller else everything
            case Scope.TOPIC:
                name = self._service.topics.real_name(context.params.name)
                return "topic", name, caller.actions_on_topic(name) if caller else everything
            case Scope.SERVER:
                return "", "", caller.server_actions if caller else everything
            case _:
                return self._kind, self._name, self.actions


def rights_of(
    service: Service, session: Session, interfaces: tuple[str, ...], kind: str, name: str
) -> Rights | None:
    """None where nothing is checked and nothing is audited."""
    if session.caller is None and session.audit is None:
        return None
    return Rights(service, session, interfaces, kind, name)
