@0xd3a1c5f09b7e4e21;
# The records on disk: values of the column families (see queueber/db/families.py).
#
# This schema has its own version; queueber/db/store/format.py says how to change it. For speed,
# queueber/db/ encodes the frequent records by hand. The bytes are those of a Cap'n Proto builder,
# except that unset pointers at the end are left out; tests compare the two. Other values are
# fixed-width bytes, which their codecs describe.

struct LeaseEntry {
  expiresAtMs @0 :UInt64;
  held @1 :Data;               # 36 bytes for each run: its last id, then its value
}

struct QueueRecord {
  name @0 :Text;
  createdAtMs @1 :UInt64;
  itemsMax @2 :UInt64;
  bytesMax @3 :UInt64;
  itemBytesMax @4 :UInt64;
  leaseMs @5 :UInt64;
  attemptsMax @6 :UInt32;
  backoffMs @7 :List(UInt64);
  backoffBaseMs @8 :UInt64;
  backoffFactor @9 :Float64;
  backoffCapMs @10 :UInt64;
  backoffJitter @11 :Float64;
  dedupWindowMs @12 :UInt64;
  resultAgeMs @13 :UInt64;
  resultBytesMax @14 :UInt64;
  pausedUntilMs @15 :UInt64;   # 0: not paused
  noIsolation @16 :Bool;
  concurrencyMax @17 :UInt32;
  rateItems @18 :UInt32;       # in rateMs; 0: no limit
  rateMs @19 :UInt64;          # 0: a second
  batchesMax @20 :UInt64 = 10000000;
  batchKeepMs @21 :UInt64 = 604800000;
  capBy @22 :Text;             # the attribute whose value is the cap key of an item
  capByConcurrencyMax @23 :UInt32;
  capByRateItems @24 :UInt32;  # of one cap key, in capByRateMs; 0: no limit
  capByRateMs @25 :UInt64;     # 0: a second
  deadAgeMs @26 :UInt64;       # 0: dead letters are kept until somebody deletes them
}

struct QueueCounters {
  ready @0 :UInt64;
  delayed @1 :UInt64;
  leased @2 :UInt64;
  leases @3 :UInt64;
  contentsBytes @4 :UInt64;    # contents, keys and attributes of all items
  addedTotal @5 :UInt64;
  polledTotal @6 :UInt64;
  removedTotal @7 :UInt64;
  expiredTotal @8 :UInt64;
  extendedTotal @9 :UInt64;
  leaseDueMs @10 :UInt64;      # no lease of the queue expires before this
  delayedDueMs @11 :UInt64;    # no delayed item of the queue becomes visible before this
  dead @12 :UInt64;
  completedTotal @13 :UInt64;
  failedTotal @14 :UInt64;
  releasedTotal @15 :UInt64;
  diedTotal @16 :UInt64;
  redrivenTotal @17 :UInt64;
  cancelledTotal @18 :UInt64;
  duplicatesTotal @19 :UInt64;
  leasesTotal @20 :UInt64;     # leases ever given; decides which poll takes the oldest items, see
                               # engine/queue/poll.py
  forgets @21 :UInt64;         # entries of the family `forget`
  forgetDueMs @22 :UInt64;     # none of them is due before this
  batches @23 :UInt64;
  lastBatch @24 :UInt64;       # the number of the newest batch
  lastId @25 :Data;            # 16 bytes: the newest id of an item or lease of the queue
  levels @26 :Data;            # 33 bytes for each level with ready items: level, count, low mark
  quarantined @27 :UInt64;     # items with a `group_max` that are not dead
  rateFullAtUs @28 :UInt64;    # when the queue's rate allows a full burst again, see engine/caps/
  slots @29 :UInt64;           # items that count among those of their cap key
  parked @30 :UInt64;          # ready items that wait for a slot of their cap key
  capsToReview @31 :UInt64;    # 1: the cap of cap keys was changed, and not all were looked at
  callbacks @32 :UInt64;       # callbacks of batches whose item was not added yet
  callbackRecords @33 :UInt64; # all callbacks, also those whose item was added
  capDues @34 :UInt64;         # entries of the family `cap_due`
  capDueMs @35 :UInt64;        # none of them is due before this
  expiring @36 :UInt64;        # items that die at a time of their own, unless they are leased before
  expiryDueMs @37 :UInt64;     # none of them does so before this
  waiting @38 :UInt64;         # delayed items that wait for others
  waitsDue @39 :UInt64;        # notes of what they waited for and has ended
  deadDroppedTotal @40 :UInt64;
  lastNote @41 :UInt64;        # the number of the newest of those notes
  unclaimedTotal @42 :UInt64;
}

struct LoadRecord {
  name @0 :Text;
  epoch @1 :UInt64;
  isCommitting @2 :Bool;       # the intent: the commit will be finished, even after a crash
  batch @3 :UInt32;            # its number; 0: none
  startedAtMs @4 :UInt64;
  seenAtMs @5 :UInt64;         # time of the last call
  timeoutMs @6 :UInt64;
  forgetAtMs @7 :UInt64;       # when its entry in `forget` is due
  idHead @8 :Data;             # the first 9 bytes of all its ids
  dedupWindowMs @9 :UInt64;
  token @10 :Data;
  rows @11 :UInt64;            # staged so far
  parts @12 :List(Data);       # of the intent: the keys of its parts
  dropped @13 :Data;           # of the intent: 56 bytes for each duplicate: its id, the digest of
                               # its key, and the entry that `keys` will have for this key
}

struct LoadedRecord {
  # The last committed load of a name.
  name @0 :Text;
  epoch @1 :UInt64;
  batch @2 :UInt32;
  startedAtMs @3 :UInt64;
  committedAtMs @4 :UInt64;
  forgetAtMs @5 :UInt64;
  rows @6 :UInt64;
  duplicates @7 :UInt64;
}

struct LoadPart {
  partition @0 :UInt32;
  attempt @1 :Text;
  files @2 :List(LoadFile);
  rows @3 :UInt64;
  contentsBytes @4 :UInt64;
  digest @5 :Data;
  levels @6 :List(UInt64);
  delayed @7 :UInt64;
  delayedFirstMs @8 :UInt64;
  keys @9 :UInt64;
}

struct LoadFile {
  name @0 :Text;
  family @1 :Text;
  bytes @2 :UInt64;
  entries @3 :UInt64;
  crc32 @4 :UInt32;
  firstKey @5 :Data;
  lastKey @6 :Data;
}

struct TopicRecord {
  name @0 :Text;
  alias @1 :Text;              # empty: none
  contentType @2 :Text;
  createdAtMs @3 :UInt64;
  logs @4 :List(UInt32);       # the number of the log of each partition
  isClosed @5 :Bool;
  isDeleted @6 :Bool;          # its space is being freed, or kept for its forks
  usedAtMs @7 :UInt64;         # about when it was last used, if its time to live slides
  forks @8 :UInt32;            # how many topics share its messages
  parent @9 :UInt32;           # the number of the topic that it is a fork of; 0: of none
  inherited @10 :Data;         # 22 bytes for each stretch of messages that it shares, in order:
                               # partition 2, log 4, first offset 8, end offset 8
  retentionMs @11 :UInt64;
  retentionBytes @12 :UInt64;
  retentionMessages @13 :UInt64;
  deletesAcknowledged @14 :Bool;
  refusesWhenFull @15 :Bool;
  keepsLastPerKey @16 :Bool;
  tombstoneMs @17 :UInt64 = 86400000;
  ttlMs @18 :UInt64;
  expiresAtMs @19 :UInt64;
  dedupWindowMs @20 :UInt64 = 120000;
  schemaVersion @21 :UInt32;
  origin @22 :UInt32;          # of a fork: the number of the topic that its oldest ancestor is
  forkOffset @23 :UInt64;      # of a fork of one partition: the offset at which it began
  cutBytes @24 :UInt64;        # of a fork: its first message has so many bytes of the one there
  textSequence @25 :Text;      # of the last publication that had one
  sources @26 :UInt32;         # how many routes lead to it
  updatedAtMs @27 :UInt64;     # when settings, alias, partitions or sources were changed, or it was
                               # closed; 0: not since this is known
}

struct RouteRecord {
  where @0 :Text;              # the filter; empty: none
  partitionBy @1 :Text;        # fields; empty: the key of the event
  payload @2 :UInt8;           # 0: key, 1: full, 2: diff
}

struct ScheduleRecord {
  when @0 :Text;               # an expression, see docs/schedules.md
  zone @1 :Text;
  missed @2 :UInt8;            # 0: once, 1: skip, 2: all
  priority @3 :UInt8;          # of its items, like the next two
  contents @4 :Data;
  attributes @5 :Data;         # as in a block of items
  createdAtMs @6 :UInt64;
  nextAtMs @7 :UInt64;         # 0: it is paused, or has no further time
  lastAtMs @8 :UInt64;         # the time of the last run, as the expression has it; 0: none
  runs @9 :UInt64;
  isPaused @10 :Bool;
  options @11 :Data;           # of its items, as in `item_options`, but `expires` counts from the
                               # add; empty: none
}

struct CallbackRecord {
  to @0 :Text;                 # the queue that gets the item
  contents @1 :Data;           # of the item, like the next three; empty once it was added
  key @2 :Text;
  priority @3 :UInt8;
  attributes @4 :Data;         # as in a block of items
  createdAtMs @5 :UInt64;
  digest @6 :Data;             # of the first five, and of the options if there are some
  itemId @7 :Data;             # the item that was added; empty: it was not
  options @8 :Data;            # as those of schedules
}

struct GroupRecord {
  number @0 :UInt32;
  kind @1 :UInt8;              # 0: ordered, 1: shared, 2: bridge into a queue
  createdAtMs @2 :UInt64;
  queue @3 :Text;              # of a bridge: the name of the queue
  settings @4 :QueueRecord;    # of a shared group: leases, attempts, backoff; name and pause
  inFlightMax @5 :UInt64;      # of a shared group: messages that are leased at once
  beganAt @6 :List(UInt64);    # of the others: the first cursor in each partition; empty: all 0
}
