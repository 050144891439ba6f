"""Routes: changes of a queue's items, published to topics in the transaction that makes them."""
