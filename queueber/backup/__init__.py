"""Backups in a repository: taken from a running server, listed, checked, restored.

A repository is a directory or a bucket. Files that RocksDB never changes are in it once, whatever
number of backups have them:

    files/<fingerprint>.sst         shared by backups
    backups/<name>/<file>           the files of one backup that are its own
    backups/<name>/backup.json      what the backup contains, written last

The package uses the client alone: a backup may be taken from another machine.
"""
