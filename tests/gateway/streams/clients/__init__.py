"""Clients of Durable Streams that others wrote, against a real server with its gateway."""
