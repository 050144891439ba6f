"""Cron expressions: what they say, and when the next time is in a time zone. Values alone."""

from queueber.cron.expression import Cron, Every, When, parse_when
from queueber.cron.times import next_time_ms
from queueber.cron.zones import to_zone

__all__ = ["Cron", "Every", "When", "next_time_ms", "parse_when", "to_zone"]
