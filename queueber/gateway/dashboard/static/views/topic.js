// One topic: how it went, its messages and their live tail, its groups and partitions.

import { topicPath } from "../app/api.js";
import { values, watch } from "../app/watch.js";
import { h, setText } from "../parts/dom.js";
import { ago, bytes, count, duration, short } from "../parts/format.js";
import { histories } from "../parts/histories.js";
import { plot } from "../parts/plot.js";
import { tabs } from "../parts/tabs.js";
import { tiles } from "../parts/tiles.js";
import { actions } from "./topic_actions.js";
import { messages, tail } from "./topic_messages.js";
import { groups, partitions } from "./topic_tables.js";

const TILES = [
  ["messages", "Messages"],
  ["bytes", "Size"],
  ["rate", "In / s"],
  ["partitions", "Partitions"],
  ["groups", "Groups"],
  ["lag", "Most lag"],
  ["behind", "Behind"],
  ["last", "Last message"],
];

export function topic(name, firstTab) {
  const sums = tiles(TILES);
  const badge = h("span", { class: "badge warn", hidden: true }, "closed");
  const buttons = actions(name);
  const plots = histories(topicPath(name, "/history"), [
    plot({ title: "Messages / s", series: [{ name: "messages_per_s", label: "published", color: "ready" }] }),
    plot({ title: "Bytes / s", format: bytes, isBinary: true, series: [{ name: "bytes_per_s", label: "published", color: "leased" }] }),
    plot({ title: "Most lag, messages", series: [{ name: "lag", label: "the group that is furthest behind", color: "amber" }] }),
  ]);
  let shape = { partitions: [] };
  const parts = tabs(`#/topics/${encodeURIComponent(name)}`, firstTab, [
    ["messages", "Messages", () => messages(name, () => shape)],
    ["tail", "Live tail", () => tail(name)],
    ["groups", "Groups", () => groups(name)],
    ["partitions", "Partitions", () => partitions()],
  ]);
  const notice = h("div", { class: "notice bad", role: "alert", hidden: true });
  const element = h(
    "div",
    { class: "stack" },
    h("div", {}, h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Overview"), " / Topic"), h("div", { class: "head" }, h("h1", {}, name), badge, h("span", { class: "space" }), buttons.element)),
    notice,
    h("section", { class: "card", "aria-label": "Numbers of the topic" }, sums.element),
    plots.element,
    h("section", { class: "card", "aria-label": "Contents of the topic" }, parts.element),
  );

  const tell = (text) => {
    notice.hidden = !text;
    setText(notice, text);
  };
  const close = watch(
    { view: "topic", topic: name },
    {
      topic: ({ rows }) => {
        tell("");
        const { topic: info, numbers, groups: known } = values(rows);
        if (info) shape = info;
        if (info) buttons.show(info);
        if (numbers) show(numbers);
        if (known) parts.count("groups", known.groups.length);
        parts.tell({ topic: info, groups: known });
      },
      gone: (text) => tell(text),
      refused: (error) => tell(error.message),
    },
  );

  function show(numbers) {
    badge.hidden = !numbers.is_closed;
    sums.show({
      messages: count(numbers.messages),
      bytes: bytes(numbers.bytes),
      rate: short(numbers.messages_per_s),
      partitions: count(numbers.partitions),
      groups: count(numbers.groups),
      lag: count(numbers.lag),
      behind: numbers.lag_ms ? duration(numbers.lag_ms) : "–",
      last: numbers.last_ms ? ago(numbers.last_ms) : "–",
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
