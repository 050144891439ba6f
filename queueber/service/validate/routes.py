"""The checks of sources of topics."""

from queueber.filters import parse_fields, parse_filter
from queueber.model import Source


def check_source(source: Source) -> None:
    """Raises `InvalidArgument` if a text is wrong; which fields items have is known to the
    engine."""
    if source.where:
        parse_filter(source.where)
    if source.partition_by:
        parse_fields(source.partition_by, "partitionBy")
