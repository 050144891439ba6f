@0xbab6e22de0402699;
# The wire contract of Queueber.
#
# The first part is the original Queueber interface: its names and ordinals never change, so that a
# client compiled against it works unchanged. What came later is appended: fields after the last
# ordinal of a struct, methods after `extend`, new types at the end.
#
# Where a field ends in `Secs` and another of the same name in `Ms`, the duration is their sum.
#
# "Columns": a list of structs costs several times what parallel lists of plain values cost to build
# and to read, so the bulk forms below carry one list per field. Clients may use either form.

struct AddRequest {
  items @0 :List(Item);
  contents @1 :List(Data);     # columns: further items, stored after `items`, in order
  delaysMs @2 :List(UInt64);   # columns: empty (no delay), or one for each of `contents`
  priorities @3 :List(UInt8);  # columns: empty (5 for all), or one for each; 0 to 9, higher first
  keys @4 :List(Text);         # columns: empty (no keys), or one for each; "" is no key
  attributes @5 :Attributes;   # columns: of `contents`
  batch @6 :Text;              # the batch that all items of the call belong to; "" is none
  producer @7 :Producer;       # who sends this, so that a repeated call is recognised
  origin @8 :Origin;           # where `contents` come from, to be kept in their ids
}

struct AddResponse {
  ids @0 :List(Data);          # 16 bytes each, UUIDv7 (with an origin: UUIDv8), in the order of the
                               # request
  duplicates @1 :List(Bool);   # empty (none), or for each whether its key was there already: the id
                               # is then that of the first one, and nothing was stored
  isRepeat @2 :Bool;           # the call was known from its producer: this is its first answer,
                               # without ids when it is too long ago for those to be remembered
}

struct Item {
  contents @0 :Data;
  visibilityTimeoutSecs @1 :UInt64;
  visibilityTimeoutMs @2 :UInt64;
  priority @3 :UInt8 = 5;
  key @4 :Text;
  attributes @5 :List(Attribute);
}

struct RemoveRequest {
  id @0 :Data;
  lease @1 :Data;
}

struct RemoveResponse {
  removed @0 :Bool;
}

struct PollRequest {
  leaseValiditySecs @0 :UInt64;  # together with leaseValidityMs: 0 means the queue's default
  numItems @1 :UInt32;         # 0 means 1
  timeoutSecs @2 :UInt64;      # together with timeoutMs: 0 means the server's longest wait
  leaseValidityMs @3 :UInt64;
  timeoutMs @4 :UInt64;
  noWait @5 :Bool;             # answer at once, whatever the timeout says
  columns @6 :Bool;            # answer in `contents` and `ids` instead of `items`
  bound @7 :Bool;              # end the lease when this connection ends
  token @8 :UInt64;            # names the poll for `withdrawPoll`; 0: it has no name
}

struct PollResponse {
  items @0 :List(PolledItem);
  lease @1 :Data;              # empty when there are no items
  contents @2 :List(Data);
  ids @3 :List(Data);
  details @4 :ItemDetails;     # of `ids`
}

struct PolledItem {
  contents @0 :Data;
  id @1 :Data;
  attempt @2 :UInt32;          # 1 for the first
  addedAtMs @3 :UInt64;        # also in the first 6 bytes of `id`
  key @4 :Text;
  attributes @5 :List(Attribute);
  batch @6 :Text;
}

struct ExtendRequest {
  lease @0 :Data;
  leaseValiditySecs @1 :UInt64;
  leaseValidityMs @2 :UInt64;
}

struct ExtendResponse {
  extended @0 :Bool;
}

interface Queue {
  add @0 (req :AddRequest) -> (resp :AddResponse);
  remove @1 (req :RemoveRequest) -> (resp :RemoveResponse);
  poll @2 (req :PollRequest) -> (resp :PollResponse);
  extend @3 (req :ExtendRequest) -> (resp :ExtendResponse);

  removeMany @4 (req :RemoveManyRequest) -> (resp :RemoveManyResponse);
  extendMany @5 (req :ExtendManyRequest) -> (resp :ExtendManyResponse);
  pollMany @6 (req :PollManyRequest) -> (resp :PollManyResponse);
  stats @7 () -> (stats :QueueStats);

  complete @8 (req :CompleteRequest) -> (resp :CompleteResponse);
  fail @9 (req :FailRequest) -> (resp :FailResponse);
  release @10 (req :ReleaseRequest) -> (resp :ReleaseResponse);

  receipt @11 (batch :Text) -> (receipt :Receipt);
  waitBatch @12 (batch :Text, timeoutMs :UInt64) -> (receipt :Receipt);
  # Answers once the batch is complete, or as it is when the time is up.

  readResults @13 (req :ReadRequest) -> (resp :ReadResponse);
  ackResults @14 (reader :Text, offset :UInt64) -> ();
  # `reader` needs nothing before `offset` any more. The first call makes the reader known.

  dropReader @15 (reader :Text) -> (dropped :Bool);
  listReaders @16 () -> (log :LogStats);

  peek @17 (req :PeekRequest) -> (resp :PeekResponse);
  cancel @18 (ids :List(Data)) -> (cancelled :List(Bool));
  purge @19 (state :ItemState, limit :UInt32) -> (purged :UInt32, more :Bool);
  # A slice of at most `limit` items (0: as many as the server allows); call it until no `more`.

  redrive @20 (ids :List(Data), limit :UInt32) -> (redriven :UInt32, more :Bool);
  # The dead letters of `ids`; without ids a slice of all of them.

  pause @21 (forMs :UInt64) -> ();
  # No poll is served for that long; 0: until `resume`.

  resume @22 () -> ();

  withdrawPoll @23 (token :UInt64) -> ();
  # A poll of this connection that still waits is answered with nothing. One that has its items is
  # left alone: its answer is on its way.

  # A load: many items that become visible at once. Tasks stage files of items, each for a partition
  # of its own; a commit takes the attempts that it names, and all else of the load is dropped.

  beginLoad @24 (req :BeginLoadRequest) -> (load :Load);
  # Begin the load of that name, or find it as it stands.

  stageFile @25 (req :StageFileRequest) -> ();
  # Bytes of a file of a part. May be repeated.

  finishPart @26 (req :FinishPartRequest) -> ();
  # All files of the part are there: they are checked against what is announced. May be repeated.

  commitLoad @27 (req :CommitLoadRequest) -> (load :Load);
  # Make the items of these parts visible, all at once. Repeated, it answers as the first time.

  abortLoad @28 (load :LoadRef) -> (aborted :Bool);
  # Drop all that was staged; false when there is no such load, or it is committed.

  listLoads @29 () -> (loads :List(Load));
  # Those that are not committed.

  # A snapshot: the queue as it is at one moment, to be read by several connections.

  openSnapshot @30 () -> (snapshot :Snapshot);
  scanSnapshot @31 (req :ScanRequest) -> (resp :ScanResponse);
  closeSnapshot @32 (id :Data) -> (closed :Bool);

  splitSnapshot @33 (snapshot :Data, state :ItemState, parts :UInt32) -> (cuts :List(Data));
  # Cut the items of a state into at most `parts` ranges, to be scanned side by side. A range is what
  # `scanSnapshot` finds `after` one cut and `before` the next; the first range has no `after`, the
  # last one no `before`.
}

interface Service extends(Queue) {
  # The bootstrap object. Used as a Queue it is the queue named "default".

  queue @0 (name :Text, mustExist :Bool) -> (queue :Queue);
  # The capability of a queue, created with default settings unless `mustExist`.

  createQueue @1 (name :Text, settings :QueueSettings) -> (created :Bool);
  # False when it exists already with these settings.

  configureQueue @2 (name :Text, settings :QueueSettings) -> ();
  deleteQueue @3 (name :Text) -> (deleted :Bool);
  listQueues @4 (after :Text, limit :UInt32) -> (queues :List(QueueStats), more :Bool);
  # In order of name, those after `after`; a limit of 0 means as many as the server allows.

  describe @5 () -> (server :ServerInfo);

  hello @6 (name :Text) -> ();
  # What the caller calls itself, for the server's log.
}

struct RemoveManyRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
  counts @2 :List(UInt32);     # instead of ids, one for each lease: how many items it was given with
}

struct RemoveManyResponse {
  removed @0 :List(Bool);      # one for each id; or for each lease, false unless it held them all
}

struct ExtendManyRequest {
  leases @0 :List(Data);
  leaseValiditiesMs @1 :List(UInt64);   # one for each lease, or a single one for all of them
}

struct ExtendManyResponse {
  extended @0 :List(Bool);     # one for each lease
}

struct PollManyRequest {
  # Several polls at once, each under a lease of its own. Never waits.
  leaseValidityMs @0 :UInt64;
  counts @1 :List(UInt32);
  bound @2 :Bool;              # end the leases when this connection ends
}

struct PollManyResponse {
  # The items of the first lease, then those of the second, and so on.
  leases @0 :List(Data);       # one for each poll that was asked for; empty where it got no items
  counts @1 :List(UInt32);     # how many of `ids` and `contents` belong to each
  ids @2 :List(Data);
  contents @3 :List(Data);
  details @4 :ItemDetails;     # of `ids`
}

struct QueueSettings {
  itemsMax @0 :UInt64;         # 0 in one of these three: no limit of the queue's own
  bytesMax @1 :UInt64;
  itemBytesMax @2 :UInt64;
  leaseMs @3 :UInt64 = 60000;  # of a poll that names none
  attemptsMax @4 :UInt32 = 20; # after so many failures an item is a dead letter; 0: never
  backoffMs @5 :List(UInt64);  # the delay after the first failure, the second ...; the last one
                               # repeats. Empty: base * factor ^ (attempt - 1), at most cap
  backoffBaseMs @6 :UInt64 = 1000;
  backoffFactor @7 :Float64 = 2;
  backoffCapMs @8 :UInt64 = 3600000;
  backoffJitter @9 :Float64 = 0.1;  # the share of the delay that chance may take off it
  dedupWindowMs @10 :UInt64 = 600000;
  resultAgeMs @11 :UInt64 = 604800000;  # results older than this go; 0: none does
  resultBytesMax @12 :UInt64;  # the oldest results beyond this go; 0: none does
  noIsolation @13 :Bool;       # the items of a lease that expires stay together
}

struct QueueStats {
  name @0 :Text;
  settings @1 :QueueSettings;
  createdAtMs @2 :UInt64;
  ready @3 :UInt64;
  delayed @4 :UInt64;
  inProgress @5 :UInt64;
  leases @6 :UInt64;
  contentsBytes @7 :UInt64;    # contents, keys and attributes of all items that are here
  oldestClaimableAgeMs @8 :UInt64;  # how long the oldest item that a poll could have has been ready
  waitingPolls @9 :UInt64;
  addedTotal @10 :UInt64;
  polledTotal @11 :UInt64;
  removedTotal @12 :UInt64;
  expiredTotal @13 :UInt64;    # items given back because their lease ran out or its holder hung up
  extendedTotal @14 :UInt64;
  dead @15 :UInt64;
  completedTotal @16 :UInt64;
  failedTotal @17 :UInt64;     # attempts that were charged
  releasedTotal @18 :UInt64;
  diedTotal @19 :UInt64;       # items that became dead letters
  redrivenTotal @20 :UInt64;
  cancelledTotal @21 :UInt64;  # by cancel and by purge
  duplicatesTotal @22 :UInt64; # adds that a key kept out
  pausedUntilMs @23 :UInt64;   # 0: not paused; all bits set: until resumed
  results @24 :UInt64;         # results that are kept
  resultBytes @25 :UInt64;
  batches @26 :UInt64;         # batches that are remembered
}

struct ServerInfo {
  version @0 :Text;
  durability @1 :Text;         # "sync" or "os"
  itemBytesMax @2 :UInt64;
  messageBytesMax @3 :UInt64;
  pollItemsMax @4 :UInt32;
  pollWaitMsMax @5 :UInt64;
}

struct Attribute {
  name @0 :Text;
  value @1 :Text;
}

struct Attributes {
  # The string maps of many items: `counts` pairs for each, in order. All empty: no item has any.
  counts @0 :List(UInt16);
  names @1 :List(Text);
  values @2 :List(Text);
}

struct ItemDetails {
  # What items carry beside their contents. A list that would say nothing of any is empty.
  attempts @0 :List(UInt32);   # empty: the first attempt of each
  keys @1 :List(Text);
  batches @2 :List(Text);
  attributes @3 :Attributes;
}

struct Producer {
  id @0 :Text;                 # "": no producer, the other two do not matter
  epoch @1 :UInt64;            # of two with the same id, the greater one is in charge
  sequence @2 :UInt64;         # 1 for the first call of an epoch, then one more for each
}

struct CompleteRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
  results @2 :List(Data);      # one for each id
}

struct CompleteResponse {
  completed @0 :List(Bool);    # one for each id; false: refused, the lease does not hold it
}

enum FailOutcome {
  refused @0;                  # the lease does not hold it
  retried @1;                  # it comes back
  died @2;                     # it is a dead letter
}

struct FailRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
  errors @2 :List(Text);       # one for each id, or a single one for all of them
  delaysMs @3 :List(Int64);    # the same; -1, or none at all: the queue's backoff
}

struct FailResponse {
  outcomes @0 :List(FailOutcome);
}

struct ReleaseRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
}

struct ReleaseResponse {
  released @0 :List(Bool);
}

struct Receipt {
  batch @0 :Text;
  added @1 :UInt64;            # = done + dead + live
  done @2 :UInt64;             # completed or removed
  dead @3 :UInt64;             # dead letters, and what was cancelled or purged
  live @4 :UInt64;             # still here
  addedDigest @5 :Data;        # 16 bytes: the sum, modulo 2^128, of the BLAKE2b-128 of each id
  doneDigest @6 :Data;
  deadDigest @7 :Data;
  complete @8 :Bool;           # added = done + dead, the digests say so too, and no load adds to it
}

struct ReadRequest {
  reader @0 :Text;             # go on where this reader has acknowledged; "": from `offset`
  offset @1 :UInt64;
  limit @2 :UInt32;            # 0: as many as the server allows
  timeoutMs @3 :UInt64;        # wait that long for the first one
  batch @4 :Text;              # only results of this batch; "": of all
  before @5 :UInt64;           # only results before this offset; 0: all that there are
  without @6 :Columns;         # what is not to be sent
  snapshot @7 :Data;           # of the results that there were when it was taken, though they have
                               # been deleted since; never waits, and `reader` does not matter
}

struct ReadResponse {
  # Results in order of offset: the first has `firstOffset`, the next one more, and so on.
  firstOffset @0 :UInt64;
  nextOffset @1 :UInt64;       # where to read on
  missed @2 :UInt64;           # results before `firstOffset` that were asked for, but have been
                               # deleted
  ids @3 :List(Data);
  results @4 :List(Data);
  completedAtMs @5 :List(UInt64);
  attempts @6 :List(UInt32);
  keys @7 :List(Text);         # empty when no result has one
  batches @8 :List(Text);      # empty when no result has one
  attributes @9 :Attributes;
  offsets @10 :List(UInt64);   # of each, when a batch was asked for: results between them are not
                               # of it; else empty
}

struct Columns {
  results @0 :Bool;
  keys @1 :Bool;
  batches @2 :Bool;
  attributes @3 :Bool;
  contents @4 :Bool;
}

struct LogStats {
  firstOffset @0 :UInt64;      # the oldest that is kept
  nextOffset @1 :UInt64;       # that of the next to come
  bytes @2 :UInt64;
  readers @3 :List(LogReader);
}

struct LogReader {
  name @0 :Text;
  offset @1 :UInt64;           # what it needs next
}

enum ItemState {
  ready @0;
  delayed @1;
  inProgress @2;
  dead @3;
}

struct PeekRequest {
  state @0 :ItemState;
  after @1 :Data;              # `next` of the page before; empty for the first
  limit @2 :UInt32;            # 0: as many as the server allows
}

struct PeekResponse {
  items @0 :List(PeekedItem);
  next @1 :Data;               # empty: there are no more
}

struct PeekedItem {
  id @0 :Data;
  contents @1 :Data;
  addedAtMs @2 :UInt64;
  key @3 :Text;
  attributes @4 :List(Attribute);
  batch @5 :Text;
  priority @6 :UInt8;
  attempts @7 :UInt32;         # charged so far
  groupMax @8 :UInt32;         # leased only with so many at once; 0: no limit
  atMs @9 :UInt64;             # ready: since when; delayed: until when; in progress: the lease's
                               # end; dead: since when
  lease @10 :Data;             # in progress
  reason @11 :Text;            # dead: why
  lastError @12 :Text;
  attemptTimesMs @13 :List(UInt64);
}

struct Origin {
  load @0 :LoadRef;            # a load that is under way: once it has ended, the call is refused
  partition @1 :UInt32;        # below 2^24
  row @2 :UInt32;              # of the first of `contents`; the others follow it
}

enum LoadState {
  staging @0;
  committing @1;
  committed @2;
}

struct BeginLoadRequest {
  name @0 :Text;
  batch @1 :Text;              # the batch that all items of the load belong to; "": none
  timeoutMs @2 :UInt64;        # the load is dropped when nobody calls for so long; 0: an hour
  epoch @3 :UInt64;            # loads of the same name follow each other: what was committed in an
                               # epoch is not loaded again in it, or in one before
  mustExist @4 :Bool;          # find the load as it stands; do not begin it
}

struct Load {
  name @0 :Text;
  state @1 :LoadState;
  batch @2 :Text;
  startedAtMs @3 :UInt64;      # the time of its items
  expiresAtMs @4 :UInt64;      # unless somebody calls before
  rows @5 :UInt64;             # staged so far; once committed: items that were added
  duplicates @6 :UInt64;       # once committed: rows that a key kept out

  # What is needed to build the files of a part:
  queueNumber @7 :UInt32;
  batchNumber @8 :UInt32;
  idHead @9 :Data;             # 9 bytes; an id goes on with partition (3 bytes) and row (4 bytes)
  dedupWindowMs @10 :UInt64;
  itemBytesMax @11 :UInt64;
  fileBytesMax @12 :UInt64;
  directory @13 :Text;         # where the server keeps the files of the load
  token @14 :Data;             # what the file `token` there says: who can read it may put files
                               # there instead of sending them
  epoch @15 :UInt64;
}

struct StageFileRequest {
  load @0 :LoadRef;
  part @1 :PartRef;
  file @2 :Text;
  offset @3 :UInt64;
  data @4 :Data;
}

struct LoadRef {
  name @0 :Text;
  epoch @1 :UInt64;
}

struct PartRef {
  partition @0 :UInt32;        # below 2^24
  attempt @1 :Text;            # attempts of a partition do not know of each other
}

struct StagedFile {
  # An SST file of RocksDB, with the entries of one family in order.
  name @0 :Text;
  family @1 :Text;             # see docs/storage-format.md; "claims": see docs/protocol.md
  bytes @2 :UInt64;
  entries @3 :UInt64;
  crc32 @4 :UInt32;
  firstKey @5 :Data;
  lastKey @6 :Data;
}

struct FinishPartRequest {
  load @0 :LoadRef;
  part @1 :PartRef;
  files @2 :List(StagedFile);
  rows @3 :UInt64;
  contentsBytes @4 :UInt64;    # contents, keys and attributes
  digest @5 :Data;             # as in Receipt, of the ids of the part; zeros without a batch
  levels @6 :List(UInt64);     # ready items of priority 9, 8, ... 0
  delayed @7 :UInt64;
  delayedFirstMs @8 :UInt64;   # the earliest time of those
  keys @9 :UInt64;             # items with a key, if the load has a window
}

struct CommitLoadRequest {
  load @0 :LoadRef;
  parts @1 :List(PartRef);     # one of each partition that has rows
}

struct Snapshot {
  id @0 :Data;
  takenAtMs @1 :UInt64;
  expiresAtMs @2 :UInt64;      # unless somebody scans before
  firstOffset @3 :UInt64;      # of the results that there were
  nextOffset @4 :UInt64;
  ready @5 :UInt64;
  delayed @6 :UInt64;
  inProgress @7 :UInt64;
  dead @8 :UInt64;
}

struct ScanRequest {
  snapshot @0 :Data;
  state @1 :ItemState;
  after @2 :Data;              # `next` of the page before; empty for the first
  before @3 :Data;             # only what comes before this cursor; empty: all
  limit @4 :UInt32;            # 0: as many as the server allows
  batch @5 :Text;              # only items of this batch; "": of all
  without @6 :Columns;         # what is not to be sent
}

struct ScanResponse {
  # As PeekedItem, in columns.
  next @0 :Data;               # empty: there are no more
  ids @1 :List(Data);
  contents @2 :List(Data);
  details @3 :ItemDetails;     # its attempts: charged so far
  priorities @4 :List(UInt8);
  atMs @5 :List(UInt64);
  leases @6 :List(Data);
  reasons @7 :List(Text);
  lastErrors @8 :List(Text);
}
