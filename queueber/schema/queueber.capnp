@0xbab6e22de0402699;
# The wire protocol of Queueber; see docs/protocol.md.
#
# The first part is the interface of the original Queueber. Its names and ordinals never change, so
# clients that were compiled against it work unchanged. Additions come at the end: fields after the
# last ordinal of a struct, methods after the last method, new types at the end of the file.
#
# If two fields have the same name but for `Secs` and `Ms`, the duration is their sum.
#
# "Columns": parallel lists of plain values are several times faster to build and to read than lists
# of structs, so the bulk forms below have one list for each field. Clients may use either form.

struct AddRequest {
  items @0 :List(Item);
  contents @1 :List(Data);     # columns: further items, stored after `items`, in order
  delaysMs @2 :List(UInt64);   # columns: empty (no delay), or one for each of `contents`
  priorities @3 :List(UInt8);  # columns: empty (5 for all), or one for each; 0 to 9, higher first
  keys @4 :List(Text);         # columns: empty (no keys), or one for each; "" is no key
  attributes @5 :Attributes;   # columns: of `contents`
  batch @6 :Text;              # the batch of all items of the call; "" is none
  producer @7 :Producer;       # numbers the calls of a producer, so that the server detects a retry
  origin @8 :Origin;           # where `contents` come from; their ids contain it
  packed @9 :Packed;           # columns: instead of `contents`
  idRuns @10 :Bool;            # the answer may have `idRuns` instead of `ids`
  options @11 :List(ItemOptions);
  optionsOf @12 :List(UInt16); # columns: which of `options` each has, 1 for the first; 0: none.
                               # Empty: all of `contents` have the only one of `options`
  after @13 :List(Data);       # items of the queue that all items of the call wait for
  afterBatch @14 :Text;        # a batch of the queue that they wait for; "" is none
}

struct ItemOptions {
  # What an item has of its own, in place of what its queue says.
  attemptsMax @0 :Int32 = -1;  # failures that make it a dead letter; 0: no limit; -1: as the queue says
  backoffMs @1 :List(UInt64);  # its delays after each failure; the last one repeats. Empty: as the
                               # queue says
  timeoutMs @2 :UInt64;        # how long a worker may take with it; 0: as the worker says
  expiresMs @3 :UInt64;        # so long after the add it dies, unless it was leased; 0: it does not
}

struct AddResponse {
  ids @0 :List(Data);          # 16 bytes each, UUIDv7 (with an origin: UUIDv8), in the order of the
                               # request
  duplicates @1 :List(Bool);   # empty (none), or for each item whether the queue had its key: the
                               # item is then not stored, and its id is that of the first item
  isRepeat @2 :Bool;           # the producer repeated a call: this is the first answer, without
                               # ids if the server does not remember them any more
  idRuns @3 :Data;             # see Packed
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
  token @8 :UInt64;            # identifies the poll for `withdrawPoll`; 0: none
  packed @9 :Bool;             # answer in `idRuns` and `packed` instead of `items`
}

struct PollResponse {
  items @0 :List(PolledItem);
  lease @1 :Data;              # empty when there are no items
  contents @2 :List(Data);
  ids @3 :List(Data);
  details @4 :ItemDetails;     # of `ids`
  idRuns @5 :Data;             # see Packed
  packed @6 :Packed;           # contents
}

struct PolledItem {
  contents @0 :Data;
  id @1 :Data;
  attempt @2 :UInt32;          # 1 for the first
  addedAtMs @3 :UInt64;        # also in the first 6 bytes of `id`
  key @4 :Text;
  attributes @5 :List(Attribute);
  batch @6 :Text;
  deliveries @7 :UInt32;       # how often it was leased, this time included
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
  # Answers once the batch is complete, or after the timeout.

  readResults @13 (req :ReadRequest) -> (resp :ReadResponse);
  ackResults @14 (reader :Text, offset :UInt64) -> ();
  # `reader` needs no result before `offset`. The first call creates the reader.

  dropReader @15 (reader :Text) -> (dropped :Bool);
  listReaders @16 () -> (log :LogStats);

  peek @17 (req :PeekRequest) -> (resp :PeekResponse);
  cancel @18 (ids :List(Data)) -> (cancelled :List(Bool));
  purge @19 (state :ItemState, limit :UInt32) -> (purged :UInt32, more :Bool);
  # A slice of at most `limit` items (0: as many as the server allows); repeat it while `more`.

  redrive @20 (ids :List(Data), limit :UInt32) -> (redriven :UInt32, more :Bool);
  # The dead letters of `ids`, or without ids a slice of all.

  pause @21 (forMs :UInt64) -> ();
  # Polls get nothing for that long; 0: until `resume`.

  resume @22 () -> ();

  withdrawPoll @23 (token :UInt64) -> ();
  # A poll of this connection that still waits is answered without items. A poll that already has
  # items is not changed.

  # A load adds many items, which become visible at once. Tasks stage files of items, one task for
  # each partition; the commit adds the parts that it names, and drops all others.

  beginLoad @24 (req :BeginLoadRequest) -> (load :Load);
  # Begin the load of that name, or return the one that exists.

  stageFile @25 (req :StageFileRequest) -> ();
  # Write bytes of a file of a part. May be repeated.

  finishPart @26 (req :FinishPartRequest) -> ();
  # All files of the part are staged: check them against this request. May be repeated.

  commitLoad @27 (req :CommitLoadRequest) -> (load :Load);
  # Make the items of these parts visible, all at once. A repeated call gets the first answer.

  abortLoad @28 (load :LoadRef) -> (aborted :Bool);
  # Drop all staged files; false if there is no such load, or it is committed.

  listLoads @29 () -> (loads :List(Load));
  # The loads that are not committed.

  # A snapshot is the queue at one moment. Several connections may read it.

  openSnapshot @30 () -> (snapshot :Snapshot);
  scanSnapshot @31 (req :ScanRequest) -> (resp :ScanResponse);
  closeSnapshot @32 (id :Data) -> (closed :Bool);

  splitSnapshot @33 (snapshot :Data, state :ItemState, parts :UInt32) -> (cuts :List(Data));
  # Cut the items of a state into at most `parts` ranges, to be scanned in parallel. A range is what
  # `scanSnapshot` finds `after` one cut and `before` the next. The first range has no `after`, and
  # the last one no `before`.

  listLeases @34 (after :Data, limit :UInt32) -> (leases :List(LeaseInfo), more :Bool);
  # The live leases, oldest first, starting after the lease `after`; a limit of 0 means as many as
  # the server allows.

  listBatches @35 (before :UInt32, limit :UInt32) -> (batches :List(BatchInfo), more :Bool);
  # The batches that are remembered, newest first, starting with the one before number `before` (0:
  # with the newest).

  forgetBatch @36 (batch :Text) -> (forgotten :Bool);
  # False if there is no such batch; an error if it has live items, or a load adds to it.

  forgetBatches @37 (unchangedForMs :UInt64, after :UInt32, limit :UInt32)
      -> (forgotten :UInt32, next :UInt32);
  # Of up to `limit` batches (0: as many as the server allows) after number `after`, oldest first:
  # forget those without live items that did not change for so long. Repeat it with `next` as
  # `after`, until `next` is 0.

  whenComplete @38 (batch :Text, callback :Callback) -> (info :CallbackInfo);
  # Add an item once the batch is complete; at once if it is. A batch has one callback: until its
  # item was added, another one takes its place. A call that comes again changes nothing.

  callback @39 (batch :Text) -> (info :CallbackInfo);

  findItem @40 (id :Data, key :Text, after :UInt64) -> (found :FoundItem, next :UInt64);
  # An item in whatever state, by its id, or by the key that the queue remembers. One that is done is
  # looked for among the results, a part of them a call: while `next` is not 0, go on with it as
  # `after`, and with the `id` of the answer.

  cancelKey @41 (key :Text) -> (cancelled :Bool);
  # The item that was added last with a key, in whatever state.

  cancelBatch @42 (batch :Text, state :ItemState, after :Data, limit :UInt32)
      -> (cancelled :UInt32, next :Data);
  # Of the next `limit` items of a state (0: as many as the server allows): those that belong to the
  # batch. While `next` is not empty, go on with it as `after`.

  reschedule @43 (ids :List(Data), delayMs :UInt64) -> (rescheduled :List(Bool));
  # Items that are ready or delayed become ready after that delay; 0: now. False, and unchanged: one
  # in another state, one that waits for others, and one that would expire before.
}

interface Service extends(Queue) {
  # The bootstrap object. Used as a Queue it is the queue named "default".

  queue @0 (name :Text, mustExist :Bool) -> (queue :Queue);
  # The capability of a queue, created with default settings unless `mustExist`.

  createQueue @1 (name :Text, settings :QueueSettings) -> (created :Bool);
  # False if it exists with these settings; an error if it exists with others.

  configureQueue @2 (name :Text, settings :QueueSettings) -> ();
  deleteQueue @3 (name :Text) -> (deleted :Bool);
  listQueues @4 (after :Text, limit :UInt32) -> (queues :List(QueueStats), more :Bool);
  # Sorted by name, starting after `after`; a limit of 0 means as many as the server allows.

  describe @5 () -> (server :ServerInfo);

  hello @6 (name :Text, host :Text, process :UInt32) -> ();
  # The name of the client, which the server logs with its address. Leases say who holds them with
  # both, and with the name of its machine and the number of its process, if it says these (0: not).

  topic @7 (name :Text, mustExist :Bool) -> (topic :Topic);
  # The capability of a topic. One that does not exist is created with default settings, unless
  # `mustExist`, or unless the server is set to create none by itself. The name `queue/NAME/results`
  # is that of the results of a queue, which can only be read.

  createTopic @8 (name :Text, config :TopicConfig, first :Publication, firstSchema :Data)
      -> (created :Bool, published :Published);
  # False if it exists with this configuration; an error if it exists with another. A new topic has
  # the messages of `first`, or none of both exists; one that exists takes none of them.
  # `firstSchema`, if it is not empty, is the document of its first schema; `schemaVersion` of its
  # settings must be 1 then.

  configureTopic @9 (name :Text, config :TopicConfig) -> ();
  # Replace the settings. `partitions` may grow (0: as it is); the content type stays.

  deleteTopic @10 (name :Text) -> (deleted :Bool);
  listTopics @11 (prefix :Text, after :Text, limit :UInt32, tellsTimes :Bool)
      -> (names :List(Text), more :Bool, createdAtMs :List(UInt64));
  # Sorted by name, starting after `after`; a limit of 0 means as many as the server allows. With
  # `tellsTimes` also when each was created.

  publish @12 (publications :List(Publication)) -> (published :List(Published));
  # Publish to several topics: all messages, or none.

  together @13 (req :Together) -> (resp :TogetherDone);
  # Everything in the request happens, or nothing.

  authenticate @14 (credential :Credential) -> (service :Service, caller :CallerInfo);
  # Who calls, and the service with the rights of this caller. The bootstrap object of a protected
  # server can do nothing else. Once for each connection, which ends when the credential does.

  whoAmI @15 () -> (caller :CallerInfo);

  metrics @16 () -> (families :List(MetricFamily));
  # What the server measures, for Prometheus and for the dashboard.

  histories @17 (queues :List(Text), topics :List(Text), span :HistorySpan, points :UInt32)
      -> (queues :List(History), topics :List(History));
  # The last `points` (0: all) of each, as far as the server remembers; one without any has no
  # series.

  # A backup is the whole store at one moment. Its files do not change.

  beginBackup @18 () -> (backup :Backup);
  readBackup @19 (id :Data, file :Text, offset :UInt64, bytes :UInt32) -> (data :Data);
  # Up to `bytes` (0: as many as the server allows) of a file; fewer than there are to its end only
  # if the server allows no more.

  endBackup @20 (id :Data) -> (ended :Bool);

  describeTopic @21 (name :Text) -> (topic :TopicInfo);
  # Does not count as use of the topic. Also describes one that is deleted, but kept for its forks.

  issueTokens @22 () -> (tokens :SessionTokens);
  # For a caller that has authenticated with a password, or with a refresh token: tokens that stand
  # for the password. A new password ends them.

  # A schedule adds an item to a queue at given times. Its name is its own in the whole server.

  putSchedule @23 (schedule :Schedule) -> (stored :Text);
  # Create the schedule, or change it: "created", "changed", or "unchanged" if it is the same. With
  # the same expression and zone its next time stays.

  listSchedules @24 (after :Text, limit :UInt32) -> (schedules :List(ScheduleInfo), more :Bool);
  # Without contents, sorted by name, starting after `after`; a limit of 0 means as many as the
  # server allows.

  describeSchedule @25 (name :Text) -> (schedule :ScheduleInfo);
  pauseSchedule @26 (name :Text) -> (paused :Bool);
  resumeSchedule @27 (name :Text) -> (resumed :Bool);
  # False if it was so already. Times that come during a pause are not made up for.

  runSchedule @28 (name :Text) -> (id :Data);
  # Add its item now; its next time stays.

  removeSchedule @29 (name :Text) -> (removed :Bool);
}

struct RemoveManyRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
  counts @2 :List(UInt32);     # instead of ids, one for each lease: how many items it had at first
}

struct RemoveManyResponse {
  removed @0 :List(Bool);      # one for each id; or for each lease, false unless it held all items
}

struct ExtendManyRequest {
  leases @0 :List(Data);
  leaseValiditiesMs @1 :List(UInt64);   # one for each lease, or a single one for all of them
}

struct ExtendManyResponse {
  extended @0 :List(Bool);     # one for each lease
}

struct PollManyRequest {
  # Several polls in one call, each with its own lease. Never waits.
  leaseValidityMs @0 :UInt64;
  counts @1 :List(UInt32);
  bound @2 :Bool;              # end the leases when this connection ends
  packed @3 :Bool;             # answer in `idRuns` and `packed` instead of `ids` and `contents`
}

struct PollManyResponse {
  # The items of the first lease, then those of the second, and so on.
  leases @0 :List(Data);       # one for each poll; empty for a poll that got no items
  counts @1 :List(UInt32);     # how many of `ids` and `contents` belong to each
  ids @2 :List(Data);
  contents @3 :List(Data);
  details @4 :ItemDetails;     # of `ids`
  idRuns @5 :Data;             # see Packed
  packed @6 :Packed;           # contents
}

struct QueueSettings {
  itemsMax @0 :UInt64;         # 0 in these three: no limit of the queue's own
  bytesMax @1 :UInt64;
  itemBytesMax @2 :UInt64;
  leaseMs @3 :UInt64 = 60000;  # length of leases, if a poll does not say
  attemptsMax @4 :UInt32 = 20; # failures that make an item a dead letter; 0: no limit
  backoffMs @5 :List(UInt64);  # delays after the first failure, the second ...; the last one
                               # repeats. Empty: base * factor ^ (attempt - 1), at most cap
  backoffBaseMs @6 :UInt64 = 1000;
  backoffFactor @7 :Float64 = 2;
  backoffCapMs @8 :UInt64 = 3600000;
  backoffJitter @9 :Float64 = 0.1;  # shorten delays by a random part of up to this
  dedupWindowMs @10 :UInt64 = 600000;
  resultAgeMs @11 :UInt64 = 604800000;  # older results are deleted; 0: no limit
  resultBytesMax @12 :UInt64;  # above this size the oldest results are deleted; 0: no limit
  noIsolation @13 :Bool;       # do not lease the items of an expired lease in smaller groups
  concurrencyMax @14 :UInt32;  # items that are leased at once; 0: no limit
  rateItems @15 :UInt32;       # items that may be leased in `rateMs`; 0: no limit
  rateMs @16 :UInt64;          # 0: a second
  batchesMax @17 :UInt64 = 10000000;  # batches that the queue remembers; 0: no limit
  batchKeepMs @18 :UInt64 = 604800000;  # how long it remembers a batch after its end
  capBy @19 :Text;             # an attribute of items; those with the same value share a cap
  capByConcurrencyMax @20 :UInt32;  # items with one value of it that are leased at once; 0: no limit
  capByRateItems @21 :UInt32;  # items with one value of it that may be leased in `capByRateMs`; 0: no limit
  capByRateMs @22 :UInt64;     # 0: a second
  deadAgeMs @23 :UInt64;       # dead letters that died longer ago are deleted; 0: no limit
}

struct QueueStats {
  name @0 :Text;
  settings @1 :QueueSettings;
  createdAtMs @2 :UInt64;
  ready @3 :UInt64;
  delayed @4 :UInt64;
  inProgress @5 :UInt64;       # leased
  leases @6 :UInt64;
  contentsBytes @7 :UInt64;    # contents, keys and attributes of all items in the queue
  oldestClaimableAgeMs @8 :UInt64;  # how long the oldest item that a poll could lease is ready
  waitingPolls @9 :UInt64;
  addedTotal @10 :UInt64;
  polledTotal @11 :UInt64;
  removedTotal @12 :UInt64;
  expiredTotal @13 :UInt64;    # items whose lease expired, or ended with its connection
  extendedTotal @14 :UInt64;
  dead @15 :UInt64;
  completedTotal @16 :UInt64;
  failedTotal @17 :UInt64;     # failed attempts
  releasedTotal @18 :UInt64;
  diedTotal @19 :UInt64;       # items that became dead letters
  redrivenTotal @20 :UInt64;
  cancelledTotal @21 :UInt64;  # by cancel and by purge
  duplicatesTotal @22 :UInt64; # added items that were not stored because of their key
  pausedUntilMs @23 :UInt64;   # 0: not paused; all bits set: until resumed
  results @24 :UInt64;         # results in the log
  resultBytes @25 :UInt64;
  batches @26 :UInt64;         # batches that are remembered
  parked @27 :UInt64;          # those of `ready` that wait for a lease of their cap key to end
  callbacks @28 :UInt64;       # callbacks of batches whose item was not added yet
  waiting @29 :UInt64;         # those of `delayed` that wait for other items or a batch
  deadDroppedTotal @30 :UInt64;  # dead letters that were deleted because of deadAgeMs
  unclaimedTotal @31 :UInt64;  # those of `diedTotal` that nobody leased in time, see ItemOptions
}

struct ServerInfo {
  version @0 :Text;
  durability @1 :Text;         # "sync" or "os"
  itemBytesMax @2 :UInt64;
  messageBytesMax @3 :UInt64;
  pollItemsMax @4 :UInt32;
  pollWaitMsMax @5 :UInt64;
  readsPacked @6 :Bool;        # calls may have packed contents and results, or complete by count
  startedAtMs @7 :UInt64;
  refusesWrites @8 :Text;      # why it refuses writes at the moment; "": it does not
  isProtected @9 :Bool;        # callers must authenticate
  features @10 :List(Text);    # what fields of requests it reads that older servers ignore: "itemOptions"
                               # and "after" of an add, "where" of a peek
}

struct Attribute {
  name @0 :Text;
  value @1 :Text;
}

struct Attributes {
  # The attributes of many items: each has `counts` pairs, in order. All empty: no item has any.
  counts @0 :List(UInt16);
  names @1 :List(Text);
  values @2 :List(Text);
}

struct ItemDetails {
  # Fields of items beside their contents. A list is empty if every item has the default.
  attempts @0 :List(UInt32);   # empty: the first attempt of every item
  keys @1 :List(Text);
  batches @2 :List(Text);
  attributes @3 :Attributes;
  deliveries @4 :List(UInt32); # how often each was leased, this time included; empty: as often as
                               # `attempts` says
  timeoutsMs @5 :List(UInt64); # how long a worker may take with each; 0: as the worker says
}

struct Producer {
  id @0 :Text;                 # "": no producer; the other two fields are ignored
  epoch @1 :UInt64;            # a call of an older epoch than the newest is refused
  sequence @2 :UInt64;         # 1 for the first call of an epoch, then 1 more for each
}

struct CompleteRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
  results @2 :List(Data);      # one for each id
  counts @3 :List(UInt32);     # instead of ids, one for each lease: how many items it had at first;
                               # the results are those of all items, in the order of the poll
  packed @4 :Packed;           # instead of `results`
}

struct CompleteResponse {
  completed @0 :List(Bool);    # one for each id; false: the lease does not hold it; or for each
                               # lease, false unless it held all items
}

enum FailOutcome {
  refused @0;                  # the lease does not hold it
  retried @1;                  # the item will be ready again
  died @2;                     # the item is a dead letter
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
  dead @3 :UInt64;             # dead letters, cancelled and purged items
  live @4 :UInt64;             # ready, delayed or leased
  addedDigest @5 :Data;        # 16 bytes: a sum over the ids, see docs/storage-format.md
  doneDigest @6 :Data;
  deadDigest @7 :Data;
  complete @8 :Bool;           # added = done + dead, in counts and digests, and no load adds to it
}

struct ReadRequest {
  reader @0 :Text;             # start at what this reader has acknowledged; "": at `offset`
  offset @1 :UInt64;
  limit @2 :UInt32;            # 0: as many as the server allows
  timeoutMs @3 :UInt64;        # how long to wait for the first result
  batch @4 :Text;              # only results of this batch; "": of all
  before @5 :UInt64;           # only results before this offset; 0: all
  without @6 :Columns;         # columns to leave out
  snapshot @7 :Data;           # read the results of this snapshot, even those deleted since; never
                               # waits, and ignores `reader`
}

struct ReadResponse {
  # Results in order of offset: the first has `firstOffset`, the next one 1 more, and so on.
  firstOffset @0 :UInt64;
  nextOffset @1 :UInt64;       # where the next read starts
  missed @2 :UInt64;           # results in the requested range that have been deleted
  ids @3 :List(Data);
  results @4 :List(Data);
  completedAtMs @5 :List(UInt64);
  attempts @6 :List(UInt32);
  keys @7 :List(Text);         # empty if no result has one
  batches @8 :List(Text);      # empty if no result has one
  attributes @9 :Attributes;
  offsets @10 :List(UInt64);   # the offset of each result, if the request named a batch; else empty
}

struct Columns {
  results @0 :Bool;
  keys @1 :Bool;
  batches @2 :Bool;
  attributes @3 :Bool;
  contents @4 :Bool;
}

struct LogStats {
  firstOffset @0 :UInt64;      # of the oldest result in the log
  nextOffset @1 :UInt64;       # of the next result to be appended
  bytes @2 :UInt64;
  readers @3 :List(LogReader);
}

struct LogReader {
  name @0 :Text;
  offset @1 :UInt64;           # the next result that it needs
}

enum ItemState {
  ready @0;
  delayed @1;
  inProgress @2;               # leased
  dead @3;
}

struct PeekRequest {
  state @0 :ItemState;
  after @1 :Data;              # `next` of the page before; empty for the first
  limit @2 :UInt32;            # 0: as many as the server allows
  where @3 :Text;              # a filter, see docs/client.md; a call then looks at up to 1,000 items
}

struct PeekResponse {
  items @0 :List(PeekedItem);  # with a filter perhaps none, though there is a `next`
  next @1 :Data;               # empty on the last page
}

struct PeekedItem {
  id @0 :Data;
  contents @1 :Data;
  addedAtMs @2 :UInt64;
  key @3 :Text;
  attributes @4 :List(Attribute);
  batch @5 :Text;
  priority @6 :UInt8;
  attempts @7 :UInt32;         # failed attempts so far
  groupMax @8 :UInt32;         # leased only if the holder then holds at most this many; 0: no limit
  atMs @9 :UInt64;             # ready: since when; delayed: until when; leased: the lease's end;
                               # dead: since when
  lease @10 :Data;             # of a leased item
  reason @11 :Text;            # why the item is dead
  lastError @12 :Text;
  attemptTimesMs @13 :List(UInt64);
  deliveries @14 :UInt32;      # how often it was leased; what counts no attempt up to 255 times
  after @15 :List(Data);       # items that it waits for
  afterBatch @16 :Text;        # a batch that it waits for
  attemptsMax @17 :Int32 = -1; # of its own; 0: no limit; -1: as the queue says
  backoffMs @18 :List(UInt64); # of its own; empty: as the queue says
  timeoutMs @19 :UInt64;       # how long a worker may take with it; 0: as the worker says
  expiresAtMs @20 :UInt64;     # it dies then, unless it is leased before; 0: it does not
}

struct Origin {
  load @0 :LoadRef;            # must be under way
  partition @1 :UInt32;        # below 2^24
  row @2 :UInt32;              # of the first of `contents`; each further one has the next row
}

enum LoadState {
  staging @0;
  committing @1;
  committed @2;
}

struct BeginLoadRequest {
  name @0 :Text;
  batch @1 :Text;              # the batch of all items of the load; "": none
  timeoutMs @2 :UInt64;        # the server drops a load that gets no call for this long; 0: an hour
  epoch @3 :UInt64;            # once an epoch is committed, the server adds nothing in it or in an
                               # earlier one
  mustExist @4 :Bool;          # return the load, but do not begin one
}

struct Load {
  name @0 :Text;
  state @1 :LoadState;
  batch @2 :Text;
  startedAtMs @3 :UInt64;      # the time at which its items count as added
  expiresAtMs @4 :UInt64;      # when the server drops it, if it gets no call before
  rows @5 :UInt64;             # rows staged so far; once committed, items added
  duplicates @6 :UInt64;       # once committed, rows left out because of their key

  # To build the files of a part:
  queueNumber @7 :UInt32;
  batchNumber @8 :UInt32;
  idHead @9 :Data;             # first 9 bytes of an id; then partition (3 bytes), row (4 bytes)
  dedupWindowMs @10 :UInt64;
  itemBytesMax @11 :UInt64;
  fileBytesMax @12 :UInt64;
  directory @13 :Text;         # where the server keeps the files of the load
  token @14 :Data;             # the content of the file `token` there: a client that can read it
                               # may put files there instead of sending them
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
  attempt @1 :Text;            # each attempt at a partition has its own files
}

struct StagedFile {
  # An SST file of RocksDB, with entries of one family, sorted by key.
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
  digest @5 :Data;             # of the ids of the part, as in Receipt; zeros without a batch
  levels @6 :List(UInt64);     # numbers of ready items of priority 9, 8, ... 0
  delayed @7 :UInt64;
  delayedFirstMs @8 :UInt64;   # the earliest time at which a delayed item is visible
  keys @9 :UInt64;             # number of items with a key, if the load has a dedup window
}

struct CommitLoadRequest {
  load @0 :LoadRef;
  parts @1 :List(PartRef);     # one for each partition that has rows
}

struct Snapshot {
  id @0 :Data;
  takenAtMs @1 :UInt64;
  expiresAtMs @2 :UInt64;      # when the server ends it, if nobody reads it before
  firstOffset @3 :UInt64;      # of the oldest result at that moment
  nextOffset @4 :UInt64;
  ready @5 :UInt64;
  delayed @6 :UInt64;
  inProgress @7 :UInt64;       # leased
  dead @8 :UInt64;
}

struct ScanRequest {
  snapshot @0 :Data;
  state @1 :ItemState;
  after @2 :Data;              # `next` of the page before; empty for the first
  before @3 :Data;             # only items before this cursor; empty: all
  limit @4 :UInt32;            # 0: as many as the server allows
  batch @5 :Text;              # only items of this batch; "": of all
  without @6 :Columns;         # columns to leave out
}

struct ScanResponse {
  # The fields of PeekedItem, in columns.
  next @0 :Data;               # empty on the last page
  ids @1 :List(Data);
  contents @2 :List(Data);
  details @3 :ItemDetails;     # its `attempts`: failed attempts so far
  priorities @4 :List(UInt8);
  atMs @5 :List(UInt64);
  leases @6 :List(Data);
  reasons @7 :List(Text);
  lastErrors @8 :List(Text);
  afterCounts @9 :List(UInt16);  # empty: none waits for items; or for each how many of `after`
  after @10 :List(Data);       # the items that they wait for, those of the first item first
  afterBatches @11 :List(Text);  # the batch that each waits for; empty: none waits for one
}

struct Packed {
  # Values of many items, one after the other. `idRuns` beside them are the ids as runs, 20 bytes
  # each: the last of consecutive ids, and how many there are, 4 bytes, little-endian. An id is a
  # number, big-endian; those of a run differ in the last 8 bytes only.
  ends @0 :Data;               # where each ends in `values`, 4 bytes each, little-endian
  values @1 :Data;
}

# Topics. A topic has partitions, and each of them is a log of messages with offsets from 0 on.

interface Topic {
  publish @0 (publication :Publication) -> (published :Published);
  # `topic` of the publication is ignored.

  read @1 (req :TopicReadRequest) -> (resp :MessageSlice);
  describe @2 () -> (topic :TopicInfo);

  trim @3 (partition :Int32, to :Position) -> (deleted :UInt64);
  # Delete the messages before a position, of one partition or (-1) of all.

  close @4 () -> ();
  # Take no more messages. Final; may be repeated.

  fork @5 (req :ForkRequest) -> (created :Bool, published :Published);
  # Create a topic that shares the messages of this one up to an offset, without a copy. False if
  # the same fork exists.

  find @6 (id :Data, sequence :UInt64) -> (found :Bool, partition :UInt32, offset :UInt64);
  # The message of an id; or with an empty id the first one of partition 0 with that sequence or a
  # greater one.

  createGroup @7 (name :Text, settings :GroupSettings, at :Position) -> (created :Bool);
  # False if it exists with these settings; an error if it exists with others. A new group begins at
  # the position.

  listGroups @8 () -> (groups :List(GroupInfo));
  describeGroup @9 (name :Text) -> (group :GroupInfo);
  deleteGroup @10 (name :Text) -> (deleted :Bool);

  resetGroup @11 (name :Text, partition :Int32, to :Position) -> ();
  # Move the cursor of one partition or (-1) of all, forward or back.

  pauseGroup @12 (name :Text, forMs :UInt64) -> ();
  # Consumers get nothing for that long; 0: until `resumeGroup`.

  resumeGroup @13 (name :Text) -> ();

  ack @14 (group :Text, partition :UInt32, offset :UInt64) -> (offset :UInt64);
  # A group is done with the messages before `offset`. Answers where it is: it never goes back. A
  # shared group is done with whatever its consumers have of them, but for dead letters.

  group @15 (name :Text) -> (queue :Queue);
  # A shared group as a queue: poll, extend, remove (acknowledge), fail, release, peek, redrive,
  # pause and statistics. The id of an item is 6 zero bytes, then partition (2) and offset (8).

  subscribe @16 (req :SubscribeRequest, consumer :Consumer) -> (subscription :Subscription);

  setSchema @17 (document :Data, expectedVersion :Int64 = -1, expectedOffset :Int64 = -1,
                 topicNumber :UInt64) -> (topicSchema :TopicSchema);
  # The next version of the topic's schema: in force for all messages after those that are stored.
  # It is set only if the version in force, and the offset at which the topic of one partition goes
  # on, are those expected (-1: any), and so is the number of the topic (0: any). `schemaVersion` of the settings becomes the new version.

  readSchema @18 (version :UInt32) -> (topicSchema :TopicSchema);
  # 0: the version in force.

  listSchemas @19 () -> (schemas :List(TopicSchema));
  # All versions that were set, without their documents.

  consume @20 (req :ConsumeRequest) -> (delivery :Delivery);
  # A window of one partition of a shared group, under a lease: messages in the order of their
  # offsets, with none between them that another consumer has. Waits for the first one. What was
  # consumed is acknowledged by `ack`, or as the messages of any lease of the group.

  withdrawConsume @21 (token :UInt64) -> ();
  # As `withdrawPoll`.

  addSource @22 (source :Source) -> (added :Bool);
  # Publish changes of a queue's items to this topic, each in the write that makes it. False if the
  # same source exists; an error if one of the queue and kind of change differs.

  dropSource @23 (queue :Text, on :UInt8 = 255) -> (dropped :UInt32);
  # One source of the queue, or (255) all of them. Answers how many there were.
}

struct Source {
  queue @0 :Text;
  on @1 :UInt8;                # 0: insert, 1: update, 2: delete
  where @2 :Text;              # a filter; "": every such change
  partitionBy @3 :Text;        # fields that choose the partition; "": the key of the event
  payload @4 :UInt8;           # 0: key, 1: full, 2: diff
}

struct TopicSchema {
  version @0 :UInt32;
  fromOffset @1 :UInt64;       # of the first message that had to fit it
  atMs @2 :UInt64;             # when it was set
  document @3 :Data;           # the server does not read it
  topicNumber @4 :UInt64;      # of the topic whose schema it is
}

interface Consumer {
  # What a subscriber gives to the server. The server calls it as long as there are credits.

  deliver @0 (delivery :Delivery) -> ();
  heartbeat @1 (timeMs :UInt64, sequence :UInt64) -> ();
  # Nothing to deliver. `sequence` is that of the last message of the server.

  ended @2 (error :Text) -> ();
  # No delivery follows. "": the topic is closed, and all its messages were delivered. Else an error
  # with its code: ABORTED if another consumer of the group has taken over.
}

interface Subscription {
  # Ends when its holder lets go of it.

  grant @0 (credits :UInt32) -> ();
  # So many messages more may be delivered. None may be at first.

  ack @1 (partition :UInt32, offset :UInt64) -> (offset :UInt64);
  # Of an ordered group: as `Topic.ack`.

  settle @2 (req :SettleRequest) -> (resp :SettleResponse);
  # Of a shared group.

  close @3 () -> ();
}

struct TopicConfig {
  alias @0 :Text;              # a second name, unique over names and aliases; "": none
  partitions @1 :UInt32;       # 0: 1
  contentType @2 :Text;
  settings @3 :TopicSettings;
}

struct TopicSettings {
  retentionMs @0 :UInt64;      # 0 in these three: no limit
  retentionBytes @1 :UInt64;   # of each partition
  retentionMessages @2 :UInt64;  # of each partition
  deletesAcknowledged @3 :Bool;  # delete messages that all groups have acknowledged
  refusesWhenFull @4 :Bool;    # refuse messages at a limit, instead of deleting the oldest
  keepsLastPerKey @5 :Bool;    # a message replaces the one before it with its key
  tombstoneMs @6 :UInt64 = 86400000;  # how long a message without a payload is kept then
  ttlMs @7 :UInt64;            # delete the topic once nobody has used it for so long; 0: never
  expiresAtMs @8 :UInt64;      # delete the topic at this time; 0: never
  dedupWindowMs @9 :UInt64 = 120000;  # of dedup ids
  schemaVersion @10 :UInt32;   # every publication with messages must name this one; 0: none
}

struct Publication {
  topic @0 :Text;
  payloads @1 :List(Data);
  packed @2 :Packed;           # instead of `payloads`
  keys @3 :List(Text);         # empty (no keys), or one for each; "" is no key
  attributes @4 :Attributes;
  dedupIds @5 :List(Text);     # empty, or one for each; "" is none
  partition @6 :Int32 = -1;    # -1: that of the hash of the key
  producer @7 :Producer;
  expectedOffset @8 :Int64 = -1;  # the offset that the first message must get; -1: any
  closes @9 :Bool;             # the topic takes no message after these
  contentType @10 :Text;       # if given, it must be that of the topic; parameters and letter case
                               # do not count
  textSequence @11 :Text;      # if given, it must be greater, byte by byte, than that of the last
                               # publication that had one
  numberDecides @12 :Bool;     # a call of a producer with a number that is known is a repeat,
                               # whatever its payloads are
  schemaVersion @13 :UInt32;   # of the schema that the messages were checked against
  topicNumber @14 :UInt64;     # if given, the topic must have this number: it was not created again
  mustExist @15 :Bool;         # the topic is not created if there is none
  onePartition @16 :Bool;      # the topic must have one partition: it is used as a stream
}

struct Published {
  # In the order of the request.
  atMs @0 :UInt64;
  partitions @1 :List(UInt16); # a single one: that of all messages
  offsets @2 :List(UInt64);    # a single one: that of the first message, and the others follow it
  idRuns @3 :Data;             # see Packed
  sequences @4 :List(UInt64);  # a single one: that of the first message, and the others follow it
  duplicates @5 :List(Bool);   # empty, or for each whether its dedup id was known
  isRepeat @6 :Bool;           # the producer repeated a call: this is about its messages
  count @7 :UInt32;
  endOffset @8 :UInt64;        # of a topic of one partition: where it goes on after these messages;
                               # of a repeat, or without messages: where it goes on now
  lastNumber @9 :UInt64;       # the highest number of a call of this producer and epoch
  isClosed @10 :Bool;          # the topic takes no more messages
  origin @11 :UInt64;          # of a topic of one partition: as in TopicInfo
}

struct Position {
  enum Start {
    offset @0;                 # `value` is the offset
    time @1;                   # the first message at or after `value`, in ms
    earliest @2;
    latest @3;
    last @4;                   # the last `value` messages
    group @5;                  # where the group goes on
  }
  start @0 :Start = earliest;
  value @1 :UInt64;
  moves @2 :Bool;              # move an offset that is not in the log to the nearest end
}

struct TopicReadRequest {
  partition @0 :UInt32;
  from @1 :Position;
  group @2 :Text;              # for a position of a group
  messagesMax @3 :UInt32;      # 0 in these four: no limit but the server's
  bytesMax @4 :UInt64;
  endOffset @5 :UInt64;        # only messages before it
  endMs @6 :UInt64;            # only messages that were published before it
  timeoutMs @7 :UInt64;        # how long to wait for the first message
  without @8 :Columns;         # columns to leave out: contents, keys, attributes
  tellsTopic @9 :Bool;         # the answer has the last three fields of MessageSlice
  goesOn @10 :Bool;            # the call goes on with the wait of an earlier one, and is no further
                               # use of the topic
}

struct MessageColumns {
  # Messages of one partition, in pieces of messages that were published together. `pieces` has 44
  # bytes for each, big-endian: number of messages (4), first offset (8), time in ms (8), id of the
  # first message (16), its sequence (8). Offsets, ids and sequences of the others follow it.
  pieces @0 :Data;
  payloads @1 :Packed;
  keys @2 :Packed;             # empty if no message has one
  attributes @3 :Packed;       # of each message names and values in turn, 2 bytes of length
                               # (big-endian) before each; empty if no message has any
}

struct MessageSlice {
  partition @0 :UInt32;
  messages @1 :MessageColumns;
  nextOffset @2 :UInt64;       # where the next read goes on
  firstKept @3 :UInt64;        # of the oldest message that is kept
  endOffset @4 :UInt64;        # that the next message of the partition will get
  missed @5 :UInt64;           # messages from the wanted offset on that are deleted
  isClosed @6 :Bool;           # no message comes after `endOffset`
  contentType @7 :Text;        # these three as in TopicInfo
  origin @8 :UInt64;
  number @9 :UInt64;
}

struct PartitionInfo {
  firstOffset @0 :UInt64;
  nextOffset @1 :UInt64;
  bytes @2 :UInt64;
  oldestMs @3 :UInt64;
  lastMs @4 :UInt64;
  inheritedBytes @5 :UInt64;   # of a fork: of the messages that it shares, in whole publishes
}

struct TopicInfo {
  name @0 :Text;
  config @1 :TopicConfig;
  createdAtMs @2 :UInt64;
  partitions @3 :List(PartitionInfo);
  isClosed @4 :Bool;
  isDeleted @5 :Bool;          # only its forks keep it
  forks @6 :UInt32;
  parent @7 :Text;             # of a fork
  groups @8 :List(Text);
  expiresAtMs @9 :UInt64;      # 0: never
  origin @10 :UInt64;          # the same for a topic and its forks; another one for a topic that
                               # was deleted and created again
  number @11 :UInt64;          # of the topic; none that was or will be created has the same
  forkOffset @12 :UInt64;      # of a fork of one partition: the offset at which it began
  cutBytes @13 :UInt64;        # of a fork: see ForkRequest
  textSequence @14 :Text;      # of the last publication that had one
  sources @15 :List(Source);   # the queues whose changes it gets
  updatedAtMs @16 :UInt64;     # when settings, alias, partitions or sources were changed, or it was
                               # closed; else when it was created
}

struct ForkRequest {
  name @0 :Text;               # of the new topic
  config @1 :TopicConfig;      # partitions and, if it is empty, content type are those of the topic
  partition @2 :Int32 = -1;    # with -1 the fork begins where each partition ends
  offset @3 :UInt64;           # of that partition: the fork shares the messages before it
  cutBytes @4 :UInt64;         # the first message of the fork itself has so many bytes, less than
                               # all, of the message at `offset`; 0: there is none
  first @5 :Publication;       # what a new fork has after the messages that it shares
}

enum GroupKind {
  ordered @0;                  # one consumer at a time, in order, acknowledging up to an offset
  shared @1;                   # many consumers lease messages, and acknowledge each
  queue @2;                    # the server adds the messages to a queue, each once
}

struct GroupSettings {
  kind @0 :GroupKind;
  queue @1 :Text;              # of the last kind
  leases @2 :QueueSettings;    # of a shared group: leases, attempts, backoff, isolation
  inFlightMax @3 :UInt64;      # of a shared group: messages that are leased at once; 0: no limit
}

struct GroupInfo {
  name @0 :Text;
  settings @1 :GroupSettings;
  createdAtMs @2 :UInt64;
  pausedUntilMs @3 :UInt64;
  cursors @4 :List(UInt64);    # of each partition: the oldest offset that is not acknowledged
  lag @5 :UInt64;              # messages that are not acknowledged
  lagMs @6 :UInt64;            # the age of the oldest of them
  leased @7 :UInt64;
  dead @8 :UInt64;
  consumers @9 :List(Text);
  stoppedBy @10 :Text;         # why the server does not add messages to the queue; "": it does
  isUntouched @11 :Bool;       # of an ordered group: it has acknowledged nothing
}

struct SubscribeRequest {
  group @0 :Text;              # "": no group, and nothing is acknowledged
  consumer @1 :Text;           # its name, for logs and `describeGroup`
  from @2 :Position;           # where a new group, or a subscription without one, begins
  partitions @3 :List(UInt16); # empty: all
  credits @4 :UInt32;          # the first grant
  heartbeatMs @5 :UInt64;      # 0: none
  settings @6 :GroupSettings;  # of the group, if it does not exist yet
  leaseMs @7 :UInt64;          # of a shared group; 0: as its settings say
  batchMessagesMax @8 :UInt32; # messages in one delivery; 0: as the server likes
  deliveriesMax @9 :UInt32;    # deliveries that are not answered; 0: as the server likes
  seeks @10 :Bool;             # of an ordered group: begin at `from`, wherever the group is. Its
                               # cursor moves with acks alone; a new one has it at the earliest
                               # message.
}

struct Delivery {
  slice @0 :MessageSlice;
  lease @1 :Data;              # of a shared group
  attempts @2 :List(UInt32);   # of a shared group; empty: the first of each
  missed @3 :UInt64;           # messages that were deleted before they could be delivered
}

struct SettleRequest {
  # Messages of a lease are named by partition and offset.
  lease @0 :Data;
  partitions @1 :List(UInt16); # a single one: that of all
  offsets @2 :List(UInt64);
  outcome @3 :Outcome;
  error @4 :Text;              # of a failure
  delayMs @5 :Int64 = -1;      # of a failure; -1: the backoff of the group

  enum Outcome {
    acknowledged @0;
    failed @1;
    released @2;
    extended @3;               # the whole lease, by `delayMs`, or its length
  }
}

struct SettleResponse {
  settled @0 :List(Bool);      # one for each; false: the lease does not hold it
}

struct Together {
  # Every step names what it is about. Items of one queue may be completed, failed and added at
  # once, messages of one topic acknowledged and published.
  publications @0 :List(Publication);
  acks @1 :List(GroupAck);
  queues @2 :List(QueueSteps);
}

struct GroupAck {
  topic @0 :Text;
  group @1 :Text;
  partition @2 :UInt32;
  offset @3 :UInt64;           # of an ordered group: done with all before it
  lease @4 :Data;              # of a shared group: acknowledge `offsets` under this lease
  offsets @5 :List(UInt64);
  firstOffset @6 :Int64 = -1;  # of an ordered group: the first message that the call is about; -1:
                               # the one before `offset`. If the group is done with it already, by
                               # another consumer, the call is ABORTED.
}

struct QueueSteps {
  queue @0 :Text;
  add @1 :AddRequest;          # no items: none are added
  complete @2 :CompleteRequest;
  fail @3 :FailRequest;
}

struct TogetherDone {
  # In the order of the request. An acknowledgement or an outcome that its lease does not hold fails
  # the whole call.
  published @0 :List(Published);
  added @1 :List(AddResponse); # one for each of `queues`
  failed @2 :List(FailResponse);  # one for each of `queues`
}

# Operating a server.

struct Credential {
  # A token, or a user with a password.
  token @0 :Text;              # one of the token file, or a JSON Web Token
  user @1 :Text;
  password @2 :Text;
}

struct CallerInfo {
  name @0 :Text;
  grants @1 :List(Grant);
  expiresAtMs @2 :UInt64;      # 0: never
}

struct Grant {
  # A role in the queues and topics whose names match a pattern, in which `*` stands for any text.
  role @0 :Text;
  queues @1 :List(Text);
  topics @2 :List(Text);
}

struct LeaseInfo {
  lease @0 :Data;
  holder @1 :Text;             # who polled: caller, name of the client and address; "": not known
  items @2 :UInt32;
  expiresAtMs @3 :UInt64;
  polledAtMs @4 :UInt64;
}

struct BatchInfo {
  number @0 :UInt32;
  receipt @1 :Receipt;
}

struct MetricFamily {
  # As Prometheus has them. A sample has one value for each label.
  name @0 :Text;
  help @1 :Text;
  kind @2 :Kind;
  labels @3 :List(Text);
  labelValues @4 :List(Text);  # of the first sample, of the second, ...
  values @5 :List(Float64);    # one for each sample; of a histogram its sum, then how many there
                               # were in each of its buckets, of which the last has no bound
  bounds @6 :List(Float64);    # of a histogram: the upper bounds of its buckets

  enum Kind {
    counter @0;
    gauge @1;
    histogram @2;
  }
}

enum HistorySpan {
  hour @0;                     # a point every 10 seconds
  day @1;                      # a point every 5 minutes
}

struct History {
  endMs @0 :UInt64;            # the time of the last point
  stepMs @1 :UInt64;
  series @2 :List(Series);

  struct Series {
    name @0 :Text;             # see docs/operations.md
    values @1 :List(Float64);  # oldest first
  }
}

struct Backup {
  id @0 :Data;
  takenAtMs @1 :UInt64;
  expiresAtMs @2 :UInt64;      # when the server ends it, if nobody reads it before
  format @3 :UInt32;           # of the store
  files @4 :List(BackupFile);
  queues @5 :UInt32;           # how many queues, items and topics there were when it began
  items @6 :UInt64;
  topics @7 :UInt64;
}

struct BackupFile {
  name @0 :Text;
  bytes @1 :UInt64;
  isFinal @2 :Bool;            # a file of this name and size never changes, in no later backup either
  fingerprint @3 :Data;        # of a final file: files with the same one are the same, whatever
                               # server or backup they come from
}

struct ConsumeRequest {
  group @0 :Text;
  partition @1 :UInt32;
  from @2 :Position;           # where the group begins the partition, if it has not begun it
  settings @3 :GroupSettings;  # of the group, if it does not exist yet
  messagesMax @4 :UInt32;      # 0 means 1
  leaseMs @5 :UInt64;          # 0: as the settings of the group say
  timeoutMs @6 :UInt64;        # how long to wait for the first message
  token @7 :UInt64;            # identifies the call for `withdrawConsume`; 0: none
}

struct SessionTokens {
  access @0 :Text;             # a token for calls
  accessExpiresAtMs @1 :UInt64;
  refresh @2 :Text;            # a token for `issueTokens` alone
  refreshExpiresAtMs @3 :UInt64;
}

struct Schedule {
  name @0 :Text;
  when @1 :Text;               # five fields of cron, @daily and the like, or @every 90s
  queue @2 :Text;
  contents @3 :Data;           # of its items, like `priority` and `attributes`
  zone @4 :Text;               # of the IANA database; empty: UTC
  missed @5 :Missed;
  priority @6 :UInt8 = 5;
  attributes @7 :List(Attribute);
  options @8 :ItemOptions;     # what each item has of its own

  enum Missed {
    once @0;                   # one item for all runs that were missed
    skip @1;
    all @2;                    # an item for each, of the last seven days
  }
}

struct ScheduleInfo {
  schedule @0 :Schedule;
  contentsBytes @1 :UInt64;
  createdAtMs @2 :UInt64;
  nextAtMs @3 :UInt64;         # 0: it is paused, or there is no further time
  lastAtMs @4 :UInt64;         # 0: there was no run
  runs @5 :UInt64;
  isPaused @6 :Bool;
  problem @7 :Text;            # why the queue did not take the item that is due
}

struct Callback {
  to @0 :Text;                 # the queue that gets the item
  contents @1 :Data;           # of the item, like the rest
  key @2 :Text;
  priority @3 :UInt8 = 5;
  attributes @4 :List(Attribute);  # besides those that say what the receipt says
  options @5 :ItemOptions;
}

struct CallbackInfo {
  batch @0 :Text;
  to @1 :Text;
  createdAtMs @2 :UInt64;
  itemId @3 :Data;             # the item that was added; empty: it was not
  problem @4 :Text;            # why the queue did not take the item
}

struct FoundItem {
  id @0 :Data;                 # also if it is not found; empty: the key is not remembered
  state @1 :FoundState;
  item @2 :PeekedItem;         # unless it is done
  attempts @3 :List(Attempt);  # those that failed, oldest first
  lease @4 :LeaseInfo;         # of one in progress
  result @5 :ReadResponse;     # if it is done: its result
}

enum FoundState {
  unknown @0;                  # neither in the queue nor among the results that were looked at
  ready @1;
  delayed @2;
  inProgress @3;               # leased
  dead @4;
  done @5;
}

struct Attempt {
  atMs @0 :UInt64;             # when it ended
  end @1 :AttemptEnd;
  error @2 :Text;              # of the last in full, of those before it the beginning
}

enum AttemptEnd {
  unknown @0;                  # it is kept of the last 20 only
  failed @1;                   # its holder said so
  expired @2;                  # its lease ran out
  disconnected @3;             # the connection of its holder ended
}
