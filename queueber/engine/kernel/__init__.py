"""What every part of the engine uses: the transaction, the agenda, the search for what is due."""
