@0xcd6f9a1a3b0e4f57;
# What the original Queueber keeps of an item on disk, so that its items can be brought over.

struct StoredItem {
  contents @0 :Data;
  visibilityTsIndexKey @1 :Data;
  id @2 :Data;
}
