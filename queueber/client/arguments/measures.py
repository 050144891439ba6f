"""Arguments about what the server measures."""

from queueber.errors import InvalidArgument
from queueber.model import HistorySpan

_SPANS = {each.value: each for each in HistorySpan}


def to_span(span: str) -> HistorySpan:
    if span not in _SPANS:
        raise InvalidArgument(f"span: {span!r} is unknown; give one of {', '.join(_SPANS)}")
    return _SPANS[span]
