"""HTTP/2 as calls of gRPC need it: frames, heads, flow control, and the bounds of a server.

A connection reads frames and hands them to its calls; a call makes messages of them, and frames of
what it answers. Nothing in here knows a service.
"""
