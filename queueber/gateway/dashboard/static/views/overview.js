// All queues and topics: how much waits, how fast it moves, how old it is.

import { request } from "../app/api.js";
import { Rows } from "../app/live.js";
import { values, watch } from "../app/watch.js";
import { h, setText } from "../parts/dom.js";
import { ago, bytes, count, duration, paused, short } from "../parts/format.js";
import { listing } from "../parts/listing.js";
import { tiles } from "../parts/tiles.js";

const SPARKLINES_MS = 10_000;

const QUEUE_COLUMNS = [
  { name: "name", label: "Queue", link: (row) => `#/queues/${encodeURIComponent(row.name)}`, badge: (row) => row.paused_until_ms && paused(row.paused_until_ms) },
  { name: "ready", label: "Ready", show: count },
  { name: "leased", label: "Leased", show: count, rank: 2 },
  { name: "delayed", label: "Delayed", show: count, rank: 2 },
  { name: "dead", label: "Dead", show: count, isBad: (value) => value > 0 },
  { name: "added_per_s", label: "In / s", show: short, rank: 2 },
  { name: "done_per_s", label: "Done / s", show: short, rank: 2 },
  { name: "failed_per_s", label: "Failed / s", show: short, rank: 3, isBad: (value) => value > 0 },
  { name: "waiting_polls", label: "Waiting polls", show: count, rank: 3 },
  { name: "oldest_ms", label: "Oldest", show: (ms) => (ms ? duration(ms) : "–"), rank: 2 },
  { name: "spark", label: "Ready, 1 h", isSpark: true },
];

const TOPIC_COLUMNS = [
  { name: "name", label: "Topic", link: (row) => `#/topics/${encodeURIComponent(row.name)}`, badge: (row) => row.is_closed && "closed" },
  { name: "messages", label: "Messages", show: count },
  { name: "bytes", label: "Size", show: bytes, rank: 2 },
  { name: "messages_per_s", label: "In / s", show: short },
  { name: "partitions", label: "Partitions", show: count, rank: 3 },
  { name: "groups", label: "Groups", show: count, rank: 2 },
  { name: "lag", label: "Lag", show: count },
  { name: "lag_ms", label: "Behind", show: (ms) => (ms ? duration(ms) : "–"), rank: 2 },
  { name: "last_ms", label: "Last message", show: (ms) => (ms ? ago(ms) : "–"), rank: 3 },
  { name: "spark", label: "In / s, 1 h", isSpark: true },
];

export function overview() {
  const queues = new Rows();
  const topics = new Rows();
  const sums = tiles([
    ["queues", "Queues"],
    ["ready", "Ready", "ready"],
    ["leased", "Leased", "leased"],
    ["delayed", "Delayed", "delayed"],
    ["dead", "Dead", "dead"],
    ["added", "In / s"],
    ["done", "Done / s"],
    ["failed", "Failed / s"],
    ["oldest", "Oldest ready"],
    ["waiting", "Waiting polls"],
  ]);
  const health = tiles([
    ["calls", "Calls / s"],
    ["refused", "Errors / s"],
    ["sync", "Sync, 99%"],
    ["connections", "Connections"],
    ["waits", "Calls waiting"],
    ["cpu", "CPU"],
    ["memory", "Memory"],
    ["store", "Store"],
    ["free", "Disk free"],
    ["compaction", "To compact"],
  ]);
  const server = h("section", { class: "card", "aria-label": "The server", hidden: true }, health.element);
  let asked = "";
  let answers = { queues: {}, topics: {} };
  let queueList = null;
  let topicList = null;
  queueList = listing({ noun: "queue", columns: QUEUE_COLUMNS, perPage: 50, onPage: () => sparklines() });
  topicList = listing({
    noun: "topic",
    columns: TOPIC_COLUMNS,
    perPage: 50,
    onPage: () => sparklines(),
    onPrefix: (prefix, after) => follow(prefix, after),
  });
  const notice = h("div", { class: "notice bad", role: "alert", hidden: true });
  const element = h("div", { class: "stack" }, h("h1", { class: "unseen" }, "Overview"), notice, h("section", { class: "card", "aria-label": "All queues together" }, sums.element), server, queueList.element, topicList.element);

  let close = () => {};
  const follow = (prefix, after) => {
    close();
    topics.byName.clear();
    close = watch(
      { view: "overview", topics_prefix: prefix, topics_after: after },
      {
        queues: (change) => {
          queues.take(change);
          queueList.show([...queues.byName.values()]);
          showSums();
        },
        topics: (change) => {
          topics.take(change);
          topicList.show([...topics.byName.values()]);
        },
        server: (rows) => showHealth(values(rows).health),
        refused: (error) => {
          notice.hidden = error.status === 401;
          setText(notice, error.message);
        },
      },
    );
  };

  const showSums = () => {
    const rows = [...queues.byName.values()];
    const sum = (field) => rows.reduce((total, row) => total + row[field], 0);
    const most = (field) => rows.reduce((greatest, row) => Math.max(greatest, row[field]), 0);
    sums.show({
      queues: count(rows.length),
      ready: count(sum("ready")),
      leased: count(sum("leased")),
      delayed: count(sum("delayed")),
      dead: { text: count(sum("dead")), kind: sum("dead") ? "bad" : "" },
      added: short(sum("added_per_s")),
      done: short(sum("done_per_s")),
      failed: { text: short(sum("failed_per_s")), kind: sum("failed_per_s") ? "warn" : "" },
      oldest: duration(most("oldest_ms")),
      waiting: count(sum("waiting_polls")),
    });
  };

  const showHealth = (now) => {
    if (!now) return;
    server.hidden = false;
    const isFull = now.disk_free_bytes < 2 ** 30;
    health.show({
      calls: short(now.calls_per_s),
      refused: { text: short(now.refused_per_s), kind: now.refused_per_s ? "warn" : "" },
      sync: now.sync_p99_s ? `≤ ${duration(1000 * now.sync_p99_s)}` : "–",
      connections: count(now.connections),
      waits: count(now.calls_waiting),
      cpu: `${Math.round(100 * now.cpu)}%`,
      memory: bytes(now.memory_bytes),
      store: bytes(now.store_bytes),
      free: { text: bytes(now.disk_free_bytes), kind: isFull ? "bad" : "" },
      compaction: bytes(now.compaction_bytes),
    });
  };

  async function sparklines(isDue = false) {
    if (!queueList || !topicList) return; // the first of the two lists is being made
    const body = { queues: queueList.names(), topics: topicList.names() };
    const key = JSON.stringify(body);
    queueList.sparklines(answers.queues);
    topicList.sparklines(answers.topics);
    if ((key === asked && !isDue) || (!body.queues.length && !body.topics.length)) return;
    asked = key;
    try {
      answers = await request("POST", "/live/histories", { body });
    } catch {
      return; // numbers are shown without them
    }
    queueList.sparklines(answers.queues);
    topicList.sparklines(answers.topics);
  }
  const timer = setInterval(() => sparklines(true), SPARKLINES_MS);

  follow("", "");
  return {
    element,
    tab() {},
    close() {
      clearInterval(timer);
      close();
    },
  };
}
