"""The bound on the work of a schema."""

from typing import Any

import pytest

from queueber.gateway.problems import Problem
from queueber.gateway.streams.extensions.schemas.cost import cost_of

_TREE: dict[str, Any] = {
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}}
}
_LEAF_OR_LIST: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]
}


def _doubling(lines: int) -> dict[str, Any]:
    twice = {f"a{at}": {"anyOf": [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(lines)}
    return {"$defs": twice | {f"a{lines}": {"type": "string"}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize(
    ("schema", "cost"),
    [
        (True, 1),
        ({}, 1),
        ({"type": "string"}, 2),
        ({"enum": [1, 2, 3]}, 5),
        (_TREE, 3),
        (_LEAF_OR_LIST, 7),
        ({"properties": {"$ref": {"type": "string"}, "$id": True}}, 2),
        ({"$defs": {"a/b": {"type": "string"}}, "items": {"$ref": "#/$defs/a~1b"}}, 4),
        ({"items": [{"type": "string"}], "additionalItems": False}, 2),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, 4),
    ],
)
def test_the_cost_is_the_most_checks_of_one_value(schema: Any, cost: int) -> None:
    assert cost_of(schema) == cost


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (_doubling(15), "more than 2000 checks"),
        (_doubling(40), "nested too deeply"),
        (
            {
                "$defs": {
                    "n": {
                        "anyOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}}] * 2,
                    }
                },
                "$ref": "#/$defs/n",
            },
            "more than 2000 checks",
        ),
        ({"enum": list(range(3000))}, "more than 2000 checks"),
        ({"$ref": "#"}, "a reference leads to itself"),
        ({"allOf": [{"$ref": "#"}]}, "a reference leads to itself"),
        ({"$ref": "http://example.com/x"}, "only places in the same schema"),
        ({"$ref": "file:///etc/passwd"}, "only places in the same schema"),
        ({"$ref": "#name"}, "only places in the same schema"),
        ({"$ref": "#/$defs/none"}, "there is nothing there"),
        ({"$ref": 3}, "only places in the same schema"),
        ({"items": {"$id": "http://example.com/"}}, "$id is possible at its top only"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not possible"),
        ({"$dynamicRef": "#x"}, "$dynamicRef is not possible"),
        ({"properties": 3}, "properties must be an object"),
        ({"anyOf": {}}, "anyOf must be a list"),
        ({"items": 3}, "stands where a schema is needed"),
    ],
)
def test_what_has_no_bound_is_refused(schema: Any, text: str) -> None:
    with pytest.raises(Problem) as refused:
        cost_of(schema)

    assert refused.value.status == 400
    assert text in refused.value.detail
