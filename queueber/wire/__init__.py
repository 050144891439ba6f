"""Between Cap'n Proto and the rest: codecs of messages, and byte streams on sockets."""
