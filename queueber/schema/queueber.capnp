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
}

struct AddResponse {
  ids @0 :List(Data);          # 16 bytes each, UUIDv7, in the order of the request
}

struct Item {
  contents @0 :Data;
  visibilityTimeoutSecs @1 :UInt64;
  visibilityTimeoutMs @2 :UInt64;
}

struct RemoveRequest {
  id @0 :Data;
  lease @1 :Data;
}

struct RemoveResponse {
  removed @0 :Bool;
}

struct PollRequest {
  leaseValiditySecs @0 :UInt64;
  numItems @1 :UInt32;         # 0 means 1
  timeoutSecs @2 :UInt64;      # together with timeoutMs: 0 means the server's longest wait
  leaseValidityMs @3 :UInt64;
  timeoutMs @4 :UInt64;
  noWait @5 :Bool;             # answer at once, whatever the timeout says
  columns @6 :Bool;            # answer in `contents` and `ids` instead of `items`
}

struct PollResponse {
  items @0 :List(PolledItem);
  lease @1 :Data;              # empty when there are no items
  contents @2 :List(Data);
  ids @3 :List(Data);
}

struct PolledItem {
  contents @0 :Data;
  id @1 :Data;
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
}

struct RemoveManyRequest {
  ids @0 :List(Data);
  leases @1 :List(Data);       # one for each id, or a single one for all of them
}

struct RemoveManyResponse {
  removed @0 :List(Bool);      # one for each id
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
}

struct PollManyResponse {
  # The items of the first lease, then those of the second, and so on.
  leases @0 :List(Data);       # one for each poll that was asked for; empty where it got no items
  counts @1 :List(UInt32);     # how many of `ids` and `contents` belong to each
  ids @2 :List(Data);
  contents @3 :List(Data);
}

struct QueueSettings {
  # 0 in a field: no limit of the queue's own.
  itemsMax @0 :UInt64;
  bytesMax @1 :UInt64;
  itemBytesMax @2 :UInt64;
}

struct QueueStats {
  name @0 :Text;
  settings @1 :QueueSettings;
  createdAtMs @2 :UInt64;
  ready @3 :UInt64;
  delayed @4 :UInt64;
  inProgress @5 :UInt64;
  leases @6 :UInt64;
  contentsBytes @7 :UInt64;    # contents of all items that are here
  oldestAgeMs @8 :UInt64;      # how long the oldest ready item has been ready
  waitingPolls @9 :UInt64;
  addedTotal @10 :UInt64;
  polledTotal @11 :UInt64;
  removedTotal @12 :UInt64;
  expiredTotal @13 :UInt64;    # items given back because their lease ran out or its holder hung up
  extendedTotal @14 :UInt64;
}

struct ServerInfo {
  version @0 :Text;
  durability @1 :Text;         # "sync" or "os"
  itemBytesMax @2 :UInt64;
  messageBytesMax @3 :UInt64;
  pollItemsMax @4 :UInt32;
  pollWaitMsMax @5 :UInt64;
}
