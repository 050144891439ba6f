"""Schemas of topics as they are stored."""

import struct

import pytest

from queueber.db.records import schemas
from queueber.db.records.keys import queue_prefix
from queueber.model import TopicSchema

PREFIX = queue_prefix(7)


def test_a_head_is_what_it_was() -> None:
    schema = TopicSchema(3, 17, 1_700_000_000_000)

    stored = schemas.encode_schema_head(schema)

    assert stored.hex() == "00000000000000110000018bcfe56800"
    assert schemas.decode_schema_head(3, stored) == schema
    with pytest.raises(struct.error):
        schemas.decode_schema_head(3, stored + b"x")


def test_heads_of_a_topic_are_one_range_in_the_order_of_versions() -> None:
    first, stop = schemas.heads_range(PREFIX)
    keys = [schemas.schema_key(PREFIX, version) for version in (1, 2, 256)]

    assert keys == sorted(keys)
    assert all(first <= key < stop for key in keys)
    assert not first <= schemas.document_key(PREFIX, 1) < stop
    assert [schemas.split_schema_key(key) for key in keys] == [1, 2, 256]
    assert {len(key) - len(PREFIX) for key in keys} == {schemas.SCHEMA_KEY_BYTES}
    assert schemas.is_head_key(keys[0])
    assert not schemas.is_head_key(schemas.document_key(PREFIX, 1))
