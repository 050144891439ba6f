"""HTTP/2 as gRPC needs it."""
