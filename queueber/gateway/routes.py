"""Routes: one table of what the gateway answers, from which OpenAPI is made, too.

Names in a path are percent-encoded single segments, so a path is split before it is decoded: the
topic `a/b` is `/v1/topics/a%2Fb`. A name with a star takes the rest of the path
with its slashes: the stream `a/b` is `/v1/stream/a/b`. Only one word may follow it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.responses import Response

from queueber.errors import QueueberError
from queueber.gateway.problems import Problem, invalid, of_http


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A route without query parameters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with another status than the route's usual one, or with headers of its own."""

    value: msgspec.Struct | None
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """An answer that is sent as it is: nothing is added to its headers."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""


Handler = Callable[[Any], Awaitable[msgspec.Struct | Answer | PlainAnswer | Response | None]]
"""Takes a `Call`. A struct is sent as JSON; None is an answer without a body."""


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path: what it takes, what it answers, and who handles it."""

    method: str
    path: str
    """Such as `/v1/queues/{queue}/items`, or `/v1/stream/{path*}`."""
    handle: Handler
    summary: str
    tag: str
    description: str = ""
    query: type[msgspec.Struct] = NoQuery
    body: type[msgspec.Struct] | None = None
    """What the JSON of the request is. Without it, a request with a body is refused."""
    raw_headers: type[msgspec.Struct] | None = None
    """If set, `application/octet-stream` is taken, too; these are the headers that go with it."""
    answer: type[msgspec.Struct] | None = None
    """What the answer is; None: it has no body, unless `answer_type` says which."""
    answer_type: str = "application/json"
    is_raw_answer_possible: bool = False
    """Whether it answers with raw bytes to those who accept only these."""
    status: int = 200
    other_statuses: Mapping[int, str] = field(default_factory=dict)
    """Further statuses with the same answer, and when they are sent."""
    errors: tuple[type[QueueberError], ...] = ()
    """Errors beyond those that every route may have."""
    body_example: object = None
    answer_example: object = None
    is_plain: bool = False
    """Whether its handler gets the body and the query as they came, of whatever type they are."""
    takes_bytes: bool = False
    """Whether such a request may have a body."""
    is_for_pages: bool = False
    """Whether pages of the origins that the settings allow may use it."""
    uses_client: bool = True
    """Whether it asks the server, as its caller."""
    is_shown: bool = True
    """Whether OpenAPI names it."""
    error_body: Callable[[Problem], tuple[int, bytes]] | None = None
    """If its callers read errors in another form: the status, and the JSON of an error."""
    error_answer: type[msgspec.Struct] | None = None
    """What that JSON is, if it has not the usual two fields."""

    @property
    def names(self) -> list[str]:
        """The names in its path, such as `queue`."""
        parts = self.path.split("/")
        return [part[1:-1].rstrip("*") for part in parts if part.startswith("{")]


class _Node:
    __slots__ = ("methods", "name_child", "rest_child", "words")

    def __init__(self) -> None:
        self.words: dict[bytes, _Node] = {}
        self.name_child: _Node | None = None
        self.rest_child: _Node | None = None
        self.methods: dict[str, Route] = {}


class RouteTable:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            self._put(route)

    def _put(self, route: Route) -> None:
        node = self._root
        for part in route.path.encode().split(b"/")[1:]:
            if part.endswith(b"*}"):
                node.rest_child = node = node.rest_child or _Node()
            elif part.startswith(b"{"):
                node.name_child = node = node.name_child or _Node()
            else:
                node = node.words.setdefault(part, _Node())
        if route.method in node.methods:
            raise AssertionError(f"two routes for {route.method} {route.path}")
        node.methods[route.method] = route

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """The route and the names in the path; raises a `Problem` with 404 or 405."""
        found = self._walk(self._root, raw_path.split(b"/")[1:], [])
        if found is None:
            raise of_http(404, f"there is nothing at {_shown(raw_path)}; see /docs")
        node, encoded = found
        route = node.methods.get(method)
        if route is None and method == "HEAD":
            # It is a GET whose body is left out when it is sent.
            route = node.methods.get("GET")
        if route is None:
            allowed = ", ".join(sorted(node.methods))
            raise of_http(405, f"{method} is not possible here; {allowed} is", allow=allowed)
        return route, dict(zip(route.names, map(_decoded, encoded), strict=True))

    def _walk(
        self, node: _Node, parts: list[bytes], names: list[bytes]
    ) -> tuple[_Node, list[bytes]] | None:
        """A word goes before a name, and a name before the rest of the path."""
        if not parts:
            return (node, names) if node.methods else None
        first, rest = parts[0], parts[1:]
        if (child := node.words.get(first)) and (found := self._walk(child, rest, names)):
            return found
        if node.name_child is not None and first:
            found = self._walk(node.name_child, rest, [*names, first])
            if found is not None:
                return found
        if node.rest_child is not None:
            last = node.rest_child.words.get(parts[-1])
            if last is not None and len(parts) > 1:
                return last, [*names, b"/".join(parts[:-1])]
            return node.rest_child, [*names, b"/".join(parts)]
        return None


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise invalid(f"path: {part[:200]!r} is not UTF-8, percent-encoded") from None


def _shown(raw_path: bytes) -> str:
    return raw_path[:200].decode(errors="replace")
