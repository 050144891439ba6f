"""SQL over queues and topics, for the gateway, the command line and the client."""
