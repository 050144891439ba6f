"""Split: cut the items of a state into ranges that several readers can scan side by side.

A store finds the first item after a place, but cannot count the items between two places. So the
span from the first item to the last is cut into equal cells, empty cells are dropped, and
neighbouring cells are joined into ranges. Where items lie in a few bunches, each bunch is cut once
more. Ranges are about equal if items were added at an even pace, or loaded in partitions of one
size. Otherwise they are not; every item is in exactly one range in any case, for a cut may be any
bytes.

The cost does not depend on the number of items: a split makes at most `SPLIT_SEEKS_MAX` seeks.
"""

from itertools import pairwise

from queueber.db.families import Family
from queueber.db.records.dead_letters import dead_count
from queueber.db.records.keys import PREFIX_BYTES
from queueber.db.records.runs import (
    run_count,
)
from queueber.engine.queue.peek import Span, spans
from queueber.engine.queue.queue_state import View
from queueber.limits import SPLIT_SEEKS_MAX
from queueber.model import ItemState

_CELLS_A_RANGE = 4
"""Cells are smaller than ranges, so that ranges can be made of about equally many."""
_CELLS_MAX = SPLIT_SEEKS_MAX // 4
_BUNCHES_MAX = 32
_BEGINNING = 0
"""Stands for the place of the first item of a span."""


def split(view: View, state: ItemState, parts: int) -> list[bytes]:
    """Cursors that cut the items of a state into at most `parts` ranges, in order.

    A range is what a scan finds after one cut and before the next: `look(after=, before=)`. The
    first range begins with the first item, the last one ends with the last. There may be fewer
    ranges than asked for, but none of them is empty, unless there is no item at all.
    """
    of_state = list(spans(view, state))
    total = sum(span.count for span in of_state)
    seeks = _Seeks(view)
    cuts: list[bytes] = []
    passed, target = 0.0, total / parts
    for span in of_state:
        cells = min(parts * _CELLS_A_RANGE, _CELLS_MAX) * span.count // total
        places = seeks.cells(span, cells) if cells > 1 else [_BEGINNING]
        for place in places:
            if passed >= target and len(cuts) < parts - 1:
                cuts.append(_cut_before(span, place))
                target = (passed * parts // total + 1) * total / parts
            passed += span.count / len(places)
    return cuts


def _cut_before(span: Span, place: int) -> bytes:
    if place == _BEGINNING:
        return span.head  # which comes before all items of the span
    # The cursor of a leased item is its lease and its id, so it comes after the lease alone.
    number = place if span.family is Family.LEASES else place - 1
    return span.head + number.to_bytes(len(span.low))


class _Seeks:
    """Looks for items of a view, a limited number of times.

    The place of an item is its cursor after the span's head, as a number. A leased item has that of
    its lease.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._left = SPLIT_SEEKS_MAX

    def cells(self, span: Span, wanted: int) -> list[int]:
        """The first item of each cell that has any, of about as many cells as wanted."""
        first = self._entry(span, int.from_bytes(span.low))
        if first is None:
            return [_BEGINNING]
        stop = 1 << 8 * len(span.low)
        places = self._even(span, first, self._last(span, first, stop, wanted), wanted)
        if len(places) * _CELLS_A_RANGE < wanted and len(places) <= _BUNCHES_MAX:
            each = wanted // len(places)
            bunches = list(pairwise([*places, stop]))
            places = []
            for low, end in bunches:
                places += self._even(span, low, self._last(span, low, end, each), each)
        return places

    def _even(self, span: Span, first: int, last: int, wanted: int) -> list[int]:
        """The first item of each of `wanted` equal cells that has any."""
        step = (last - first) // wanted + 1
        places = [first]
        while True:
            # The next cell after the one that the last item was found in.
            at = first + ((places[-1] - first) // step + 1) * step
            place = self._first(span, at) if at <= last else None
            if place is None or place > last:
                return places
            places.append(place)

    def _last(self, span: Span, first: int, stop: int, wanted: int) -> int:
        """A place not far behind the last item before `stop`, by halving."""
        low = first
        while stop - low > max(1, (low - first) // (_CELLS_A_RANGE * wanted)):
            middle = (low + stop) // 2
            place = self._first(span, middle)
            if place is None or place >= stop:
                stop = middle
            else:
                low = place
        return stop - 1

    def _first(self, span: Span, at: int) -> int | None:
        """The first item at a place or after it; None, also, when no seek is left."""
        first = self._entry(span, at)
        return None if first is None else max(at, first)

    def _entry(self, span: Span, at: int) -> int | None:
        """The first item of the first entry that ends at a place or after it.

        The ids of a run are consecutive, so its key, which has the last of them, and its length say
        where its items are.
        """
        if self._left == 0:
            return None
        self._left -= 1
        start = self._view.prefix + span.head + at.to_bytes(len(span.low))
        found = self._view.reads.scan(span.family, start, span.end, 1)
        if not found:
            return None
        key, value = found[0]
        last = int.from_bytes(key[PREFIX_BYTES + len(span.head) :])
        if span.family is Family.LEASES:
            return last
        count = dead_count(value) if span.family is Family.DEAD else run_count(value)
        return last - count + 1
