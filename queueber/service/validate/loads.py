"""The checks of what is said of loads."""

from queueber.engine.loads.part_check import check_partition
from queueber.errors import InvalidArgument
from queueber.limits import LOAD_CHUNK_BYTES, LOAD_NAME_BYTES_MAX, LOAD_TIMEOUT_MS_MAX
from queueber.model import LoadRef, PartRef
from queueber.service.validate.arguments import check_text


def check_load(ref: LoadRef) -> None:
    check_text("load", ref.name, LOAD_NAME_BYTES_MAX)


def check_timeout_ms(timeout_ms: int) -> None:
    if timeout_ms > LOAD_TIMEOUT_MS_MAX:
        raise InvalidArgument(
            f"timeoutMs: {timeout_ms} is too long; the limit is {LOAD_TIMEOUT_MS_MAX}"
        )


def check_part_ref(ref: PartRef) -> None:
    check_partition(ref.partition)
    check_text("attempt", ref.attempt, LOAD_NAME_BYTES_MAX)


def check_chunk(data: bytes) -> None:
    if len(data) > LOAD_CHUNK_BYTES:
        raise InvalidArgument(
            f"data: {len(data)} bytes are too many; the limit of a call is {LOAD_CHUNK_BYTES}"
        )
