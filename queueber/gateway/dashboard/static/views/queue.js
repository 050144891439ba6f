// One queue: its states, how it went, who works on it, what is in it, and what one can do.

import { queuePath, request } from "../app/api.js";
import { values, watch } from "../app/watch.js";
import { h, put, setText } from "../parts/dom.js";
import { count, duration, paused, short } from "../parts/format.js";
import { histories } from "../parts/histories.js";
import { plot } from "../parts/plot.js";
import { tabs } from "../parts/tabs.js";
import { tiles } from "../parts/tiles.js";
import { actions } from "./queue_actions.js";
import { batches, leases, numbers } from "./queue_tables.js";
import { items } from "./queue_items.js";

const TILES = [
  ["ready", "Ready", "ready"],
  ["leased", "Leased", "leased"],
  ["delayed", "Delayed", "delayed"],
  ["dead", "Dead", "dead"],
  ["added", "In / s"],
  ["polled", "Polled / s"],
  ["done", "Done / s"],
  ["failed", "Failed / s"],
  ["expired", "Expired / s"],
  ["oldest", "Oldest ready"],
  ["waiting", "Waiting polls"],
];

export function queue(name, firstTab) {
  const sums = tiles(TILES);
  const badge = h("span", { class: "badge warn", hidden: true });
  const buttons = actions(name);
  const plots = histories(queuePath(name, "/history"), [
    plot({
      title: "Throughput, items / s",
      series: [
        { name: "added_per_s", label: "added", color: "ready" },
        { name: "polled_per_s", label: "polled", color: "delayed" },
        { name: "completed_per_s", label: "done", color: "leased" },
        { name: "failed_per_s", label: "failed", color: "dead" },
      ],
    }),
    plot({
      title: "Latency",
      format: duration,
      series: [
        { name: "wait_ms", label: "waited until polled", color: "ready" },
        { name: "oldest_age_ms", label: "oldest ready", color: "amber" },
      ],
    }),
    plot({
      title: "Depth, items",
      series: [
        { name: "ready", label: "ready", color: "ready" },
        { name: "leased", label: "leased", color: "leased" },
        { name: "delayed", label: "delayed", color: "delayed" },
        { name: "dead", label: "dead", color: "dead" },
      ],
    }),
  ]);
  const parts = tabs(`#/queues/${encodeURIComponent(name)}`, firstTab, [
    ["items", "Items", () => items(name, { states: ["ready", "delayed", "leased"] })],
    ["leases", "Leases", () => leases(name)],
    ["batches", "Batches", () => batches(name)],
    ["dead", "Dead letters", () => items(name, { states: ["dead"] })],
    ["numbers", "Numbers", () => numbers()],
  ]);
  const notice = h("div", { class: "notice bad", role: "alert", hidden: true });
  const element = h(
    "div",
    { class: "stack" },
    h("div", {}, h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Overview"), " / Queue"), h("div", { class: "head" }, h("h1", {}, name), badge, h("span", { class: "space" }), buttons.element)),
    notice,
    h("section", { class: "card", "aria-label": "Numbers of the queue" }, sums.element),
    plots.element,
    h("section", { class: "card", "aria-label": "Contents of the queue" }, parts.element),
  );

  const tell = (text) => {
    notice.hidden = !text;
    setText(notice, text);
  };
  const close = watch(
    { view: "queue", queue: name },
    {
      queue: ({ rows }) => {
        tell("");
        const { stats, rates, leases: held, batches: known } = values(rows);
        if (stats) showStats(stats);
        if (rates) showRates(rates);
        parts.tell({ stats, leases: held, batches: known });
      },
      gone: (text) => tell(text),
      refused: (error) => tell(error.message),
    },
  );

  function showStats(stats) {
    badge.hidden = !stats.paused_until_ms;
    setText(badge, stats.paused_until_ms ? paused(stats.paused_until_ms) : "");
    sums.show({
      ready: count(stats.ready),
      leased: count(stats.leased),
      delayed: count(stats.delayed),
      dead: { text: count(stats.dead), kind: stats.dead ? "bad" : "" },
      oldest: stats.oldest_claimable_age_ms ? duration(stats.oldest_claimable_age_ms) : "–",
      waiting: count(stats.waiting_polls),
    });
    parts.count("leases", stats.leases);
    parts.count("batches", stats.batches);
    parts.count("dead", stats.dead);
    buttons.show(stats);
  }

  function showRates(rates) {
    sums.show({
      added: short(rates.added_per_s),
      polled: short(rates.polled_per_s),
      done: short(rates.done_per_s),
      failed: { text: short(rates.failed_per_s), kind: rates.failed_per_s ? "warn" : "" },
      expired: { text: short(rates.expired_per_s), kind: rates.expired_per_s ? "warn" : "" },
    });
  }

  return {
    element,
    tab: parts.choose,
    close() {
      close();
      plots.close();
      parts.close();
    },
  };
}
