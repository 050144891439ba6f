"""The format number: written once, checked at every open."""

import pytest

from queueber.db.store.format import FORMAT, check_format
from queueber.errors import StorageCorrupt


def test_check_format_of_an_empty_store_says_what_to_write() -> None:
    assert check_format(None, is_empty=True) == b"\0\0\0\5"


@pytest.mark.parametrize("is_empty", [True, False])
def test_check_format_of_ours_writes_nothing(is_empty: bool) -> None:
    assert check_format(FORMAT.to_bytes(4), is_empty=is_empty) is None


def test_check_format_of_queues_without_a_number_is_refused() -> None:
    with pytest.raises(StorageCorrupt, match="no format number; restore"):
        check_format(None, is_empty=False)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 6, 255, (1 << 32) - 1])
def test_check_format_of_another_number_names_both(number: int) -> None:
    with pytest.raises(
        StorageCorrupt, match=rf"format {number}, this version reads format 5; use "
    ):
        check_format(number.to_bytes(4), is_empty=False)


def test_check_format_of_the_first_format_says_what_to_use_instead() -> None:
    """Nothing reads its records any more, so no golden bytes of it are kept."""
    with pytest.raises(StorageCorrupt) as refused:
        check_format((1).to_bytes(4), is_empty=False)

    assert str(refused.value) == (
        "the store has format 1, this version reads format 5; "
        "use the version of Queueber that wrote it"
    )


def test_check_format_of_one_that_can_be_upgraded_says_how() -> None:
    with pytest.raises(StorageCorrupt) as refused:
        check_format((4).to_bytes(4), is_empty=False)

    assert str(refused.value) == (
        "the store has format 4, this version reads format 5; run 'queueber upgrade' on it, with "
        "the same --data-dir"
    )
