"""Hostile callers of the gRPC port."""
