"""The commands of backups: take, list, check and restore them; and items of the original."""
