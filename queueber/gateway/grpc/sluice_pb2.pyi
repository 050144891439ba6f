from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InitialPosition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATEST: _ClassVar[InitialPosition]
    EARLIEST: _ClassVar[InitialPosition]
    OFFSET: _ClassVar[InitialPosition]
LATEST: InitialPosition
EARLIEST: InitialPosition
OFFSET: InitialPosition

class PublishRequest(_message.Message):
    __slots__ = ("topic", "payload", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    payload: bytes
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("message_id", "sequence", "timestamp")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    sequence: int
    timestamp: int
    def __init__(self, message_id: _Optional[str] = ..., sequence: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class BatchPublishRequest(_message.Message):
    __slots__ = ("topic", "messages")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    messages: _containers.RepeatedCompositeFieldContainer[BatchMessage]
    def __init__(self, topic: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[BatchMessage, _Mapping]]] = ...) -> None: ...

class BatchMessage(_message.Message):
    __slots__ = ("payload", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, payload: _Optional[bytes] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class BatchPublishResponse(_message.Message):
    __slots__ = ("results", "timestamp")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PublishResult]
    timestamp: int
    def __init__(self, results: _Optional[_Iterable[_Union[PublishResult, _Mapping]]] = ..., timestamp: _Optional[int] = ...) -> None: ...

class PublishResult(_message.Message):
    __slots__ = ("message_id", "sequence")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    sequence: int
    def __init__(self, message_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    def __init__(self, topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("name", "created_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    created_at: int
    def __init__(self, name: _Optional[str] = ..., created_at: _Optional[int] = ...) -> None: ...

class SubscribeUpstream(_message.Message):
    __slots__ = ("init", "credit", "ack")
    INIT_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    init: SubscriptionInit
    credit: CreditGrant
    ack: Ack
    def __init__(self, init: _Optional[_Union[SubscriptionInit, _Mapping]] = ..., credit: _Optional[_Union[CreditGrant, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ...) -> None: ...

class SubscriptionInit(_message.Message):
    __slots__ = ("topic", "consumer_group", "consumer_id", "initial_position", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_GROUP_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    INITIAL_POSITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    consumer_group: str
    consumer_id: str
    initial_position: InitialPosition
    offset: int
    def __init__(self, topic: _Optional[str] = ..., consumer_group: _Optional[str] = ..., consumer_id: _Optional[str] = ..., initial_position: _Optional[_Union[InitialPosition, str]] = ..., offset: _Optional[int] = ...) -> None: ...

class CreditGrant(_message.Message):
    __slots__ = ("credits",)
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    credits: int
    def __init__(self, credits: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("message_id",)
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    def __init__(self, message_id: _Optional[str] = ...) -> None: ...

class SubscribeDownstream(_message.Message):
    __slots__ = ("delivery", "heartbeat")
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    delivery: MessageDelivery
    heartbeat: Heartbeat
    def __init__(self, delivery: _Optional[_Union[MessageDelivery, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ...) -> None: ...

class MessageDelivery(_message.Message):
    __slots__ = ("message_id", "sequence", "payload", "attributes", "timestamp")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    sequence: int
    payload: bytes
    attributes: _containers.ScalarMap[str, str]
    timestamp: int
    def __init__(self, message_id: _Optional[str] = ..., sequence: _Optional[int] = ..., payload: _Optional[bytes] = ..., attributes: _Optional[_Mapping[str, str]] = ..., timestamp: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("timestamp", "latest_seq")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LATEST_SEQ_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    latest_seq: int
    def __init__(self, timestamp: _Optional[int] = ..., latest_seq: _Optional[int] = ...) -> None: ...
