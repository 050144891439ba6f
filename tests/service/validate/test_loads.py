"""What may be said of loads: each refusal names the field, what it was, and the limit."""

from collections.abc import Callable

import pytest

from queueber.engine.loads.part_check import check_file_name
from queueber.errors import InvalidArgument
from queueber.limits import LOAD_CHUNK_BYTES, LOAD_TIMEOUT_MS_MAX, PARTITIONS_MAX
from queueber.model import LoadRef, PartRef
from queueber.service.validate.arguments import (
    check_chunk,
    check_load,
    check_part_ref,
    check_timeout_ms,
)

ALLOWED: list[Callable[[], None]] = [
    lambda: check_load(LoadRef("a")),
    lambda: check_load(LoadRef("é" * 128, 2**64 - 1)),
    lambda: check_timeout_ms(0),
    lambda: check_timeout_ms(LOAD_TIMEOUT_MS_MAX),
    lambda: check_part_ref(PartRef(0, "a")),
    lambda: check_part_ref(PartRef(PARTITIONS_MAX - 1, "a" * 256)),
    lambda: check_file_name("file", "000001-visibility_index.sst"),
    lambda: check_file_name("file", "a" * 64 + ".sst"),
    lambda: check_chunk(b""),
    lambda: check_chunk(bytes(LOAD_CHUNK_BYTES)),
]

REFUSED: dict[str, Callable[[], None]] = {
    r"^load: it is empty; give 1 to 256 bytes of text$": lambda: check_load(LoadRef("")),
    r"^load: .* has 257 bytes; the limit is 256$": lambda: check_load(LoadRef("a" * 257)),
    r"^timeoutMs: 604800001 is too long; the limit is 604800000$": lambda: check_timeout_ms(
        LOAD_TIMEOUT_MS_MAX + 1
    ),
    r"^partition: 16777216 is too high; it must be 0 to 16777215$": lambda: check_part_ref(
        PartRef(PARTITIONS_MAX, "a")
    ),
    r"^attempt: it is empty": lambda: check_part_ref(PartRef(0, "")),
    r"^attempt: .* has 258 bytes; the limit is 256$": lambda: check_part_ref(PartRef(0, "é" * 129)),
    r"^data: 1048577 bytes are too many; the limit of a call is 1048576$": lambda: check_chunk(
        bytes(LOAD_CHUNK_BYTES + 1)
    ),
}

NO_FILE_NAMES = [
    "", "a", ".sst", "a.sst/", "../a.sst", "/a.sst", "A.sst", "a b.sst", "a.sst\n", "a.SST",
    "a" * 65 + ".sst", "ä.sst", "a\0.sst", "token",
]  # fmt: skip


@pytest.mark.parametrize("check", ALLOWED)
def test_what_is_within_the_limits_is_allowed(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("told", REFUSED)
def test_what_is_beyond_a_limit_is_refused(told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        REFUSED[told]()


@pytest.mark.parametrize("name", NO_FILE_NAMES)
def test_names_that_could_lead_out_of_the_directory_are_no_names_for_files(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^file: .* is no name for a file; use up to 64"):
        check_file_name("file", name)
