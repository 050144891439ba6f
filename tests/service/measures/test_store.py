"""Metrics of the store."""

from dataclasses import asdict

from queueber.db.store.properties import StoreProperties
from queueber.service.measures.store import store_families

PROPERTIES = StoreProperties(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, True, 13)


def test_every_property_of_the_store_is_a_metric() -> None:
    *families, refused = store_families(lambda: PROPERTIES, {"stall": 2, "full_disk": 1})

    values = sorted(sample.value for family in families for sample in family.samples)
    assert values == sorted(asdict(PROPERTIES).values())
    assert [tuple(sample) for sample in refused.samples] == [
        (("full_disk",), (1,)),
        (("stall",), (2,)),
    ]
