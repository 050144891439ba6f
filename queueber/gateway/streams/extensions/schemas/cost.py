"""How much work a JSON Schema makes of one value, so that none can hold up the gateway.

A small schema can be made to take for ever: `anyOf` twice the same reference, in which `anyOf`
twice the next, doubles the work with each line. So a schema is walked before it is taken: from the
subschemas that apply to a message to those that apply to what is in it, for each name or place that
a message may have. Where too many apply to one value, or where the walk finds no end, the schema is
refused. What is left costs at most `cost` checks for each value of a message.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from queueber.gateway.problems import invalid

COST_MAX = 2_000
"""Checks that a schema may make of one value."""
STEPS_MAX = 300_000
"""Steps of the walk: a fifth of a second."""
DEPTH_MAX = 64

Node = dict[str, Any]
State = frozenset[tuple[int, int]]
"""The subschemas that apply to one value, and how often each."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_MAPS = ("dependentSchemas", "dependencies")
_OF_OBJECTS = ("patternProperties", "properties")
_OF_CHILDREN = ("additionalProperties", "additionalItems", "items", "prefixItems", "contains")
_KNOWN = {*_LISTS, *_SINGLE, *_MAPS, *_OF_OBJECTS, *_OF_CHILDREN, "propertyNames"}
_NOT_WALKED = {*_KNOWN, "$defs", "definitions", "examples", "default", "title", "description"}
_REFUSED = (
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_OTHER = "*"
"""The name or place that the schema does not mention."""


def cost_of(schema: Node | bool) -> int:
    """The most checks that the schema makes of one value of a message.

    Raises a `Problem` if there is no bound below `COST_MAX`.
    """
    return 1 if isinstance(schema, bool) else _Walk(schema).run()


class _Walk:
    def __init__(self, root: Node) -> None:
        self._root = root
        self._nodes: dict[int, Node] = {}
        self._applied: dict[int, Counter[int]] = {}
        self._under_way: set[int] = set()
        self._weights: dict[int, int] = {}
        self._steps = 0

    def run(self) -> int:
        first = frozenset(self._apply(self._root).items())
        seen, waiting, cost = {first}, [first], 0
        while waiting:
            state = waiting.pop()
            cost = max(cost, sum(self._weights[node] * count for node, count in state))
            if cost > COST_MAX:
                raise _too_costly()
            for after in self._next(state):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return cost

    def _step(self, by: int = 1) -> None:
        self._steps += by
        if self._steps > STEPS_MAX:
            raise _too_costly()

    # --- what applies to the same value -----------------------------------------------------------

    def _apply(self, schema: object) -> Counter[int]:
        """The subschemas that apply to a value if this one does."""
        if isinstance(schema, bool):
            return Counter()
        if not isinstance(schema, dict):
            raise invalid(f"schema: {str(schema)[:100]!r} stands where a schema is needed")
        key = id(schema)
        if (known := self._applied.get(key)) is not None:
            return known
        if key in self._under_way:
            raise invalid("schema: a reference leads to itself without going into the value")
        self._check(schema)
        self._under_way.add(key)
        if len(self._under_way) > DEPTH_MAX:
            raise invalid(f"schema: it is nested too deeply; the limit is {DEPTH_MAX}")
        found = Counter({key: 1})
        self._nodes[key] = schema
        self._weights[key] = 1 + sum(_leaves(v) for k, v in schema.items() if k not in _NOT_WALKED)
        for part in self._in_place(schema):
            found += self._apply(part)
            self._step(len(found))
            if found.total() > COST_MAX:
                raise _too_costly()
        self._under_way.discard(key)
        self._applied[key] = found
        return found

    def _check(self, schema: Node) -> None:
        for name in _REFUSED:
            if name in schema:
                raise invalid(f"schema: {name} is not possible here; what it costs has no bound")
        if "$id" in schema and schema is not self._root:
            raise invalid("schema: $id is possible at its top only")

    def _in_place(self, schema: Node) -> Iterator[object]:
        if "$ref" in schema:
            yield self._target(schema["$ref"])
        for name in _LISTS:
            yield from _listed(schema.get(name, []), name)
        for name in _SINGLE:
            if name in schema:
                yield schema[name]
        for name in _MAPS:
            yield from (e for e in _mapped(schema.get(name, {}), name) if not isinstance(e, list))

    def _target(self, reference: object) -> object:
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            raise invalid(
                f"schema: $ref is {str(reference)[:100]!r}; only places in the same schema are "
                "possible, such as #/$defs/name"
            )
        found: Any = self._root
        for part in unquote(reference[2:]).split("/") if len(reference) > 1 else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                raise invalid(f"schema: $ref is {reference[:100]!r}, and there is nothing there")
        return found

    # --- what applies to the values in a value ----------------------------------------------------

    def _next(self, state: State) -> Iterator[State]:
        nodes = [(self._nodes[node], count) for node, count in state]
        names: set[object] = {_OTHER}
        for node, _ in nodes:
            names.update(_mapping(node.get("properties", {}), "properties"))
            places = node.get("prefixItems", node.get("items"))
            names.update(range(len(places) if isinstance(places, list) else 0))
            self._step(len(names))
        for name in names:
            after: Counter[int] = Counter()
            for node, count in nodes:
                for child in _children(node, name):
                    for each, times in self._apply(child).items():
                        after[each] += times * count
                        self._step()
                if after.total() > COST_MAX:
                    raise _too_costly()
                self._step()
            if after:
                yield frozenset(after.items())


def _children(node: Node, name: object) -> Iterator[object]:
    """The schemas for what stands under a name or at a place; too many rather than too few."""
    if isinstance(name, int):
        for keyword in ("prefixItems", "items"):
            places = node.get(keyword)
            if isinstance(places, list) and name < len(places):
                yield places[name]
    else:
        properties = _mapping(node.get("properties", {}), "properties")
        if name in properties:
            yield properties[name]
        yield from _mapped(node.get("patternProperties", {}), "patternProperties")
        for keyword in ("additionalProperties", "propertyNames"):
            if keyword in node:
                yield node[keyword]
    for keyword in ("items", "additionalItems", "contains"):
        if keyword in node and not isinstance(node[keyword], list):
            yield node[keyword]


def _listed(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(f"schema: {name} must be a list")
    return value


def _mapping(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(f"schema: {name} must be an object")
    return value


def _mapped(value: object, name: str) -> Iterator[Any]:
    yield from _mapping(value, name).values()


def _leaves(value: object) -> int:
    """How many values a keyword compares with."""
    if isinstance(value, list):
        return 1 + sum(map(_leaves, value))
    if isinstance(value, dict):
        return 1 + sum(map(_leaves, value.values()))
    return 1


def _too_costly() -> Exception:
    return invalid(
        f"schema: it may need more than {COST_MAX} checks of one value; use fewer alternatives "
        "(anyOf, oneOf) of the same place, and fewer references to the same schema"
    )
