"""Ids as runs: a sequence like any other, made on demand."""

import pytest

from queueber.ids import ItemId, ids_up_to
from queueber.model import IdRuns

A, B, C = (ItemId(bytes([n]) * 8 + (1 << 63 | n * 200).to_bytes(8)) for n in (1, 2, 3))
RUNS = IdRuns([(A, 300), (B, 1), (C, 4)])
LISTED = [*ids_up_to(A, 300), B, *ids_up_to(C, 4)]


def test_runs_are_a_sequence_of_all_their_ids() -> None:
    assert (list(RUNS), len(RUNS), RUNS == LISTED) == (LISTED, 305, True)
    assert [RUNS[at] for at in range(-305, 305)] == [LISTED[at] for at in range(-305, 305)]
    assert list(IdRuns([])) == []
    assert IdRuns([]) != LISTED


CUTS = [slice(5), slice(299, 302), slice(-3, None), slice(9, 2), slice(None, None, 7)]


@pytest.mark.parametrize("cut", CUTS)
def test_a_slice_has_the_ids_that_one_of_a_list_has(cut: slice) -> None:
    assert list(RUNS[cut]) == LISTED[cut]


def test_an_index_outside_is_refused() -> None:
    with pytest.raises(IndexError):
        RUNS[305]


def test_runs_are_split_by_counts_even_within_a_run() -> None:
    parts = list(RUNS.split([0, 299, 1, 3, 2]))

    assert [list(part) for part in parts] == [
        [], LISTED[:299], LISTED[299:300], LISTED[300:303], LISTED[303:],
    ]  # fmt: skip


def test_runs_are_read_as_they_were_packed() -> None:
    assert len(RUNS.packed) == 3 * 20
    assert IdRuns.read(RUNS.packed).runs == RUNS.runs


def test_ids_that_are_runs_of_their_own_are_listed_as_they_are() -> None:
    assert list(IdRuns([(C, 1), (A, 1), (B, 1)])) == [C, A, B]
