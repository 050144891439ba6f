"""Filters: SQL conditions over fields, attributes and JSON contents; parsed once, applied often."""

from queueber.filters.fields import Field, Room, Value, View
from queueber.filters.parsing import Filter, parse_fields, parse_filter
from queueber.filters.record_view import RecordView

__all__ = [
    "Field",
    "Filter",
    "RecordView",
    "Room",
    "Value",
    "View",
    "parse_fields",
    "parse_filter",
]
