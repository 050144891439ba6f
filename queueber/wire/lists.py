"""What the codecs share: plain fields, and lists and attributes with limits on their length."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar, cast

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import ATTRIBUTES_MAX, SECOND_MS
from queueber.model import Column

T = TypeVar("T")


class Codec(Generic[T]):
    """Of a dataclass whose fields a message has in camelCase, unless they are `renamed`."""

    def __init__(self, kind: type[T], *, without: Collection[str] = (), **renamed: str) -> None:
        self._kind = kind
        names = [each.name for each in fields(cast(Any, kind)) if each.name not in without]
        self.names = [(renamed.get(name, _camel_case(name)), name) for name in names]
        """Of each field the name in the message, and the name in the dataclass."""

    def write(self, target: Any, value: T) -> None:
        for wire_name, name in self.names:
            setattr(target, wire_name, getattr(value, name))

    def read(self, source: Any, **others: Any) -> T:
        """The dataclass; `others` are the fields that the codec is without."""
        values = {name: getattr(source, wire_name) for wire_name, name in self.names}
        return self._kind(**values, **others)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def read_list(field: str, values: Any, count_max: int) -> list[Any]:
    """The elements of a list; refuses a list that is too long before it reads any element.

    An element may take no bytes of a message, and still takes time to read.
    """
    if len(values) > count_max:
        raise ResourceExhausted(
            f"{field}: the call has {len(values)}; the limit is {count_max}, send several calls"
        )
    return list(values)


def write_unless_empty(target: Any, field: str, column: Sequence[Any]) -> None:
    """Write a list, or leave it out if every element has the default."""
    if any(column):
        setattr(target, field, column)


def read_columns(columns: Any) -> frozenset[Column]:
    return frozenset(column for column in Column if getattr(columns, column.value))


def read_duration_ms(secs: int, ms: int) -> int:
    return secs * SECOND_MS + ms


def read_attribute_list(attributes: Any) -> dict[str, str]:
    """The attributes of one item."""
    pairs = read_list("attributes", attributes, ATTRIBUTES_MAX)
    return _as_mapping([pair.name for pair in pairs], [pair.value for pair in pairs])


def write_attribute_list(target: Any, field: str, attributes: Mapping[str, str]) -> None:
    if attributes:
        listed = target.init(field, len(attributes))
        for at, (name, value) in enumerate(attributes.items()):
            listed[at].name = name
            listed[at].value = value


def read_attribute_columns(columns: Any, count_max: int) -> list[dict[str, str]]:
    """The attributes of many items; empty if no item has any."""
    counts = read_list("attributes.counts", columns.counts, count_max)
    pairs_max = count_max * ATTRIBUTES_MAX
    names = read_list("attributes.names", columns.names, pairs_max)
    values = read_list("attributes.values", columns.values, pairs_max)
    if not len(names) == len(values) == sum(counts):
        raise InvalidArgument(
            f"attributes: {len(names)} names and {len(values)} values, but the counts add up to "
            f"{sum(counts)}"
        )
    mappings = []
    start = 0
    for count in counts:
        end = start + count
        mappings.append(_as_mapping(names[start:end], values[start:end]))
        start = end
    return mappings


def write_attribute_columns(target: Any, attributes: Sequence[Mapping[str, str]]) -> None:
    target.counts = [len(each) for each in attributes]
    target.names = [name for each in attributes for name in each]
    target.values = [value for each in attributes for value in each.values()]


def _as_mapping(names: list[str], values: list[str]) -> dict[str, str]:
    mapping = dict(zip(names, values, strict=True))
    if len(mapping) != len(names):
        raise InvalidArgument("attributes: an item has two of the same name")
    return mapping
