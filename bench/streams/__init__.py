"""Durable Streams of Queueber beside those of other servers, with one generator for all."""
