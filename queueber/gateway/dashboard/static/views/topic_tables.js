// The groups of a topic with their lag, and its partitions.

import { groupPath, request } from "../app/api.js";
import { may } from "../app/rights.js";
import { h, keyed, setText } from "../parts/dom.js";
import { ago, bytes, count, duration, exact, paused } from "../parts/format.js";
import { act } from "./acting.js";

const headed = (headings, body) =>
  h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, headings.map(([label, kind = ""]) => h("th", { scope: "col", class: kind }, label)))), body));

export function groups(topic) {
  const body = h("tbody");
  const empty = h("div", { class: "empty", hidden: true }, "There are no groups. A group remembers how far its consumers have read.");
  const element = h("div", {}, headed([["Group"], ["Kind", "w2"], ["Lag", "n"], ["Behind", "n"], ["Leased", "n w3"], ["Dead", "n w2"], ["Consumers", "w3"], [""]], body), empty);
  const make = (group) => {
    const cells = Object.fromEntries(["lag", "behind", "leased", "dead", "consumers"].map((name) => [name, h("td")]));
    cells.lag.className = cells.behind.className = "n";
    cells.leased.className = "n w3";
    cells.dead.className = "n w2";
    cells.consumers.className = "wrap w3";
    const badge = h("span", { class: "badge warn", hidden: true });
    const pause = h("button", { type: "button", class: "small", onclick: () => pauseOrResume(topic, now) });
    const buttons = h("div", { class: "buttons" }, may("operate", "topics", topic) && [pause, h("button", { type: "button", class: "small", onclick: () => reset(topic, now) }, "Reset"), h("button", { type: "button", class: "small danger", onclick: () => remove(topic, now) }, "Delete")]);
    let now = group;
    const kind = group.kind === "queue" ? `into ${group.queue}` : group.kind;
    return {
      element: h("tr", { "data-group": group.name }, h("td", { class: "name" }, group.name, " ", badge), h("td", { class: "w2" }, kind), cells.lag, cells.behind, cells.leased, cells.dead, cells.consumers, h("td", {}, buttons)),
      update: (found) => {
        now = found;
        badge.hidden = !found.paused_until_ms;
        setText(badge, found.paused_until_ms ? paused(found.paused_until_ms) : "");
        setText(pause, found.paused_until_ms ? "Resume" : "Pause");
        setText(cells.lag, count(found.lag));
        setText(cells.behind, found.lag_ms ? duration(found.lag_ms) : "–");
        setText(cells.leased, count(found.leased));
        setText(cells.dead, count(found.dead));
        cells.dead.classList.toggle("bad", found.dead > 0);
        setText(cells.consumers, found.consumers.join(", ") || "–");
      },
    };
  };
  return {
    element,
    tell({ groups: found }) {
      if (!found) return;
      keyed(body, found.groups, (group) => group.name, make);
      empty.hidden = found.groups.length > 0;
    },
  };
}

const common = (topic) => ({ name: topic, kind: "topics", right: "operate" });

function pauseOrResume(topic, group) {
  const isPaused = group.paused_until_ms > 0;
  return act({
    ...common(topic),
    title: `${isPaused ? "Resume" : "Pause"} the group ${group.name}?`,
    text: isPaused ? "Its consumers get messages again." : "Its consumers get nothing until it is resumed.",
    action: isPaused ? "Resume" : "Pause",
    run: () => request("POST", groupPath(topic, group.name, isPaused ? "/resume" : "/pause"), { body: isPaused ? undefined : {} }),
    done: () => `${group.name} is ${isPaused ? "resumed" : "paused"}.`,
  });
}

function reset(topic, group) {
  return act({
    ...common(topic),
    title: `Reset the group ${group.name}?`,
    text: "Its consumers go on from there: they get messages again, or miss some.",
    fields: [
      { name: "start", label: "To", value: "latest", options: [["latest", "the end: miss what is there"], ["earliest", "the beginning: everything again"], ["time", "minutes ago"], ["offset", "an offset"]] },
      { name: "number", label: "Minutes, or the offset", type: "number", min: 0, step: "any" },
    ],
    typed: group.name,
    action: "Reset",
    isDangerous: true,
    run: ({ start, number }) => request("POST", groupPath(topic, group.name, "/reset"), { body: placeOf(start, number) }),
    done: () => `${group.name} was reset.`,
  });
}

// A place as requests name it.
export function placeOf(start, number) {
  if (start === "time") return { to: `time:${Math.round(Date.now() - (number ?? 0) * 60_000)}` };
  return { to: start === "offset" ? Math.round(number ?? 0) : start };
}

function remove(topic, group) {
  return act({
    ...common(topic),
    title: `Delete the group ${group.name}?`,
    text: "The server forgets how far its consumers have read. This cannot be undone.",
    typed: group.name,
    action: "Delete the group",
    isDangerous: true,
    run: () => request("DELETE", groupPath(topic, group.name)),
    done: () => `${group.name} was deleted.`,
  });
}

export function partitions() {
  const body = h("tbody");
  const element = headed([["Partition"], ["First offset", "n"], ["Next offset", "n"], ["Messages", "n w2"], ["Size", "n"], ["Oldest", "n w2"], ["Last", "n"]], body);
  const make = (row) => {
    const cells = ["n", "n", "n w2", "n", "n w2", "n"].map((kind) => h("td", { class: kind }));
    return {
      element: h("tr", {}, h("td", {}, String(row.number)), cells),
      update: (now) => {
        const texts = [exact(now.first_offset), exact(now.next_offset), exact(now.next_offset - now.first_offset), bytes(now.bytes), now.oldest_ms ? ago(now.oldest_ms) : "–", now.last_ms ? ago(now.last_ms) : "–"];
        cells.forEach((cell, at) => setText(cell, texts[at]));
      },
    };
  };
  return {
    element,
    tell({ topic }) {
      if (topic) keyed(body, topic.partitions.map((each, number) => ({ ...each, number })), (row) => row.number, make);
    },
  };
}
