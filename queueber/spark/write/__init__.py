"""Writers: the rows of a DataFrame become items, all of them or none."""
