@0xd3a1c5f09b7e4e21;
# What is stored: the values of the column families (see queueber/db/families.py).
#
# Versioned apart from the wire: a change here follows the ritual in queueber/db/format.py.
# The records of the hot path are encoded by hand in queueber/db/records.py, byte for byte what a
# Cap'n Proto builder makes of these structs; tests hold the two together.

struct StoredItem {
  contents @0 :Data;
}

struct LeaseEntry {
  expiresAtMs @0 :UInt64;
  held @1 :Data;               # 20 bytes an item: its id, then the size of its contents (big-endian)
}

struct QueueRecord {
  name @0 :Text;
  createdAtMs @1 :UInt64;
  itemsMax @2 :UInt64;
  bytesMax @3 :UInt64;
  itemBytesMax @4 :UInt64;
}

struct QueueCounters {
  ready @0 :UInt64;
  delayed @1 :UInt64;
  inProgress @2 :UInt64;
  leases @3 :UInt64;
  contentsBytes @4 :UInt64;
  addedTotal @5 :UInt64;
  polledTotal @6 :UInt64;
  removedTotal @7 :UInt64;
  expiredTotal @8 :UInt64;
  extendedTotal @9 :UInt64;
  leaseDueMs @10 :UInt64;      # no lease of the queue expires before this
  delayedDueMs @11 :UInt64;    # no delayed item of the queue becomes visible before this
  readyLow @12 :Data;          # 24 bytes: no ready item sorts before this visible-at and id
  lastId @13 :Data;            # 16 bytes: the newest id that the queue was given
}
