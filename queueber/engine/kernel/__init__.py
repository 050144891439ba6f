"""What every part of the engine uses: the transaction, the table of duties, the agenda."""
