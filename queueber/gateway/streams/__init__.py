"""Durable Streams over HTTP: a stream is a topic with one partition and a content type."""
