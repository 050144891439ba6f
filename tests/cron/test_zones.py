"""Time zones by name."""

import pytest

from queueber.cron import to_zone
from queueber.errors import InvalidArgument


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_a_zone_has_its_name(name: str) -> None:
    assert to_zone(name).key == name


@pytest.mark.parametrize(
    "name", ["", "Mars", "Europe", "../etc/passwd", "/etc/localtime", "Europe/Berlin\0", "x" * 1000]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"^zone: .* is no time zone; give a name of the IANA"
    ):
        to_zone(name)
