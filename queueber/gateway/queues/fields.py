"""Fields that the structs of several routes share, with their limits and what they mean."""

from typing import Annotated

from msgspec import Meta

from queueber.limits import (
    AFTER_MAX,
    ATTEMPTS_CEILING,
    ATTRIBUTES_MAX,
    BATCH_NAME_BYTES_MAX,
    DELAY_MS_MAX,
    ID_BYTES,
    ITEM_BACKOFF_STEPS_MAX,
    ITEM_TIMEOUT_MS_MAX,
    KEY_BYTES_MAX,
    LEASE_MS_MAX,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    QUEUE_NAME_CHARS_MAX,
)

COUNT_MAX = (1 << 63) - 1

Id = Annotated[
    str,
    Meta(
        pattern=f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$",
        description="An id: 32 hexadecimal digits.",
        examples=["0192f0c1a2b37c4d8e5f60718293a4b5"],
    ),
]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=10_000)]
AwaitedIds = Annotated[list[Id], Meta(max_length=AFTER_MAX)]
Contents = Annotated[
    bytes,
    Meta(
        description="Bytes, in base64.",
        examples=["aGVsbG8="],
        extra_json_schema={
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
        },
    ),
]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=KEY_BYTES_MAX,
        description="An item whose key was used within the queue's dedup window is not stored "
        f"again. At most {KEY_BYTES_MAX} bytes of UTF-8.",
    ),
]
Batch = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=BATCH_NAME_BYTES_MAX,
        description="The name of what items belong to, for receipts. At most "
        f"{BATCH_NAME_BYTES_MAX} bytes of UTF-8.",
    ),
]
Attributes = Annotated[
    dict[Annotated[str, Meta(min_length=1)], str],
    Meta(max_length=ATTRIBUTES_MAX, description="Text that goes with an item."),
]
DelayMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]
LeaseMs = Annotated[int, Meta(ge=1, le=LEASE_MS_MAX)]
Attempts = Annotated[
    int,
    Meta(
        ge=0,
        le=ATTEMPTS_CEILING,
        description="Failures that make it a dead letter, in place of the queue's; 0: no limit.",
    ),
]
ItemBackoff = Annotated[
    list[DelayMs],
    Meta(
        max_length=ITEM_BACKOFF_STEPS_MAX,
        description="Its delays after each failure, in place of the queue's; the last repeats.",
    ),
]
TimeoutMs = Annotated[
    int,
    Meta(ge=1, le=ITEM_TIMEOUT_MS_MAX, description="How long a worker may take with it."),
]
ExpiresMs = Annotated[
    int,
    Meta(ge=1, le=DELAY_MS_MAX, description="So long after the add it dies, unless it was leased."),
]
LongMs = Annotated[int, Meta(ge=1, le=DELAY_MS_MAX)]
Priority = Annotated[
    int, Meta(ge=0, le=PRIORITY_MAX, description=f"Higher first; {PRIORITY_DEFAULT} is usual.")
]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]

QUEUE_NAME_PATTERN = f"^[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}$"
