"""The gateway: HTTP on real sockets, in front of real servers."""
