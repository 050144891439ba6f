"""gRPC for clients of Sluice (`sluice.v1.Sluice`): a second door of the gateway, to topics.

    gRPC ──▶ server ──▶ calls ──▶ publish, list_topics, subscribe ──▶ awaited client ──▶ server

It shares the loop, the clients and the bounds of the HTTP door. Messages are read as bytes when the
gateway is ready for them, and not before: so it decides how many it receives at a time. A page in a
browser cannot call it: it may send `application/grpc` elsewhere only after a question (`OPTIONS`),
which is refused as no call of gRPC.
"""
