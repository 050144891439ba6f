"""Codecs of callbacks."""

from typing import Any

from queueber.model import NO_OPTIONS, Callback, CallbackInfo
from queueber.wire.item_options import read_options, write_options
from queueber.wire.lists import Codec, read_attribute_list, write_attribute_list

_CALLBACK = Codec(Callback, without=("contents", "attributes", "options"))
_INFO = Codec(CallbackInfo, without=("item_id",))


def write_callback(target: Any, callback: Callback) -> None:
    _CALLBACK.write(target, callback)
    target.contents = callback.contents
    write_attribute_list(target, "attributes", callback.attributes)
    if callback.options != NO_OPTIONS:
        write_options(target.init("options"), callback.options)


def read_callback(source: Any) -> Callback:
    return _CALLBACK.read(
        source,
        contents=bytes(source.contents),
        attributes=read_attribute_list(source.attributes),
        options=read_options(source.options),
    )


def write_callback_info(target: Any, info: CallbackInfo) -> None:
    _INFO.write(target, info)
    target.itemId = info.item_id


def read_callback_info(source: Any) -> CallbackInfo:
    return _INFO.read(source, item_id=bytes(source.itemId))
