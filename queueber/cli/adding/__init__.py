"""How `queueber add` reads its input and sends it."""
