"""Callers: who calls, and what the grants of this caller allow.

A capability looks up its rights once, when it is given out: the set of actions on its queue or
topic. A call then costs one lookup in a set.
"""

from collections.abc import Callable, Hashable, Sequence

from queueber.auth.patterns import EVERYTHING, fixed_prefix, matches
from queueber.auth.roles import ROLES, SERVER_ACTIONS, Action
from queueber.limits import TOPIC_NAME_BYTES_MAX
from queueber.model import CallerInfo, Grant, SessionTokens

_CACHED_NAMES_MAX = 10_000
"""Names whose actions a caller remembers, about 200 bytes each."""

Patterns = Callable[[Grant], Sequence[str]]


class _Actions:
    """The actions on names of one kind, queues or topics."""

    def __init__(self, grants: Sequence[Grant], patterns: Patterns) -> None:
        self._rules = [
            (pattern, ROLES[grant.role] - SERVER_ACTIONS)
            for grant in grants
            for pattern in patterns(grant)
        ]
        self._known: dict[str, frozenset[Action]] = {}

    def on(self, name: str) -> frozenset[Action]:
        found = self._known.get(name)
        if found is None:
            allowed = (actions for pattern, actions in self._rules if matches(pattern, name))
            found = frozenset[Action]().union(*allowed)
            if len(self._known) >= _CACHED_NAMES_MAX:
                self._known.clear()
            if len(name) <= TOPIC_NAME_BYTES_MAX:  # nothing has a longer name
                self._known[name] = found
        return found

    def prefixes(self, action: Action) -> list[str]:
        """What the names begin with where the action is allowed: none begins with another."""
        found: list[str] = []
        for prefix in sorted({fixed_prefix(p) for p, actions in self._rules if action in actions}):
            if not found or not prefix.startswith(found[-1]):
                found.append(prefix)
        return found


class Caller:
    """Never changes: a caller whose grants change must authenticate again."""

    def __init__(
        self,
        name: str,
        grants: Sequence[Grant],
        expires_at_ms: int = 0,
        *,
        origin: Hashable = None,
        issue: Callable[[], SessionTokens] | None = None,
    ) -> None:
        """The roles of the grants are known ones. It ends at `expires_at_ms`; 0: never. `origin`
        is what it was found by, to see later whether that is still there. `issue` makes tokens for
        one that has shown a password."""
        self.origin = origin
        self.issue = issue
        self.name = name
        self.grants = tuple(grants)
        self.expires_at_ms = expires_at_ms
        self.queues = _Actions(grants, lambda grant: grant.queues)
        self.topics = _Actions(grants, lambda grant: grant.topics)
        everywhere = (g for g in grants if EVERYTHING in g.queues and EVERYTHING in g.topics)
        self.server_actions = frozenset[Action]().union(
            *(ROLES[grant.role] & SERVER_ACTIONS for grant in everywhere)
        )

    def __repr__(self) -> str:
        return f"<Caller {self.name!r}>"

    @property
    def info(self) -> CallerInfo:
        return CallerInfo(self.name, self.grants, self.expires_at_ms)

    def actions_on_queue(self, name: str) -> frozenset[Action]:
        return self.queues.on(name)

    def actions_on_topic(self, name: str) -> frozenset[Action]:
        return self.topics.on(name)

    def may(self, action: Action, kind: str, name: str) -> bool:
        """Whether the caller may do it with this queue or topic; `kind` says which of the two."""
        return action in (self.queues if kind == "queue" else self.topics).on(name)


def everybody() -> Caller:
    """The caller of a server that is not protected: may do everything."""
    return Caller("", [Grant("admin", (EVERYTHING,), (EVERYTHING,))])
