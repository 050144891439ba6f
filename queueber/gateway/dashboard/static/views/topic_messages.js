// Messages of a topic: a page from some place on, and those that come now.

import { request, topicPath } from "../app/api.js";
import { stream } from "../app/live.js";
import { h, put, setText } from "../parts/dom.js";
import { formSwitch } from "../parts/contents.js";
import { at, entry } from "../parts/facts.js";
import { counted } from "../parts/format.js";

const PER_PAGE = 20;
const TAIL_MAX = 200;
const HOUR_MS = 3_600_000;

function shown(message) {
  return entry({
    id: `${message.partition ?? 0}:${message.offset}`,
    base64: message.payload,
    attributes: message.attributes ?? {},
    facts: [at("published", message.published_at_ms), message.key && `key ${message.key}`, `id ${message.id}`],
  });
}

export function messages(name, shapeOf) {
  let entries = [];
  let nextOffset = null;
  const partition = h("input", { type: "number", min: 0, value: 0, "aria-label": "Partition", onchange: () => load() });
  const start = h(
    "select",
    { "aria-label": "From", onchange: () => load() },
    h("option", { value: "last" }, `the last ${PER_PAGE}`),
    h("option", { value: "earliest" }, "the first"),
    h("option", { value: "hour" }, "an hour ago"),
  );
  const list = h("div");
  const next = h("button", { type: "button", class: "small", onclick: () => load(nextOffset) }, "Next");
  const told = h("span", { role: "status" });
  const element = h(
    "div",
    {},
    h("header", { class: "head pages" }, h("label", {}, "Partition ", partition), h("label", {}, "from ", start), formSwitch(() => entries.forEach((each) => each.update())), h("button", { type: "button", class: "small", onclick: () => load() }, "Refresh")),
    list,
    h("div", { class: "pages" }, told, h("span", { class: "space" }), next),
  );

  async function load(offset = null) {
    const starts = { last: `last:${PER_PAGE}`, earliest: "earliest", hour: `time:${Date.now() - HOUR_MS}` };
    const place = offset === null ? { from: starts[start.value] } : { from: offset, moves: true };
    let page;
    try {
      page = await request("GET", topicPath(name, "/messages"), { query: { partition: partition.value || 0, messages_max: PER_PAGE, ...place } });
    } catch (error) {
      put(list, h("div", { class: "empty" }, error.isForbidden ? "You may not read this topic." : error.message));
      return;
    }
    entries = page.messages.map((message) => shown({ partition: Number(partition.value), ...message }));
    put(list, entries.length ? entries.map((each) => each.element) : h("div", { class: "empty" }, "There are no messages here."));
    nextOffset = page.next_offset;
    setText(told, page.messages.length ? `Offsets ${page.messages[0].offset} to ${page.messages.at(-1).offset}` : "");
    next.disabled = page.messages.length < PER_PAGE;
  }

  load();
  return { element };
}

export function tail(name) {
  const list = h("div", { role: "log", "aria-label": "Messages as they come", "aria-live": "off" });
  const empty = h("div", { class: "empty" }, "Messages appear here as they are published.");
  const told = h("span", { class: "hint", role: "status" }, "Connecting");
  const hold = h("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => pause() }, "Hold");
  let isHeld = false;
  let held = [];
  let entries = [];
  let seen = 0;
  const element = h("div", {}, h("header", { class: "head pages" }, formSwitch(() => entries.forEach((each) => each.update())), hold, h("span", { class: "space" }), told), empty, list);

  const add = (came) => {
    const made = came.map(shown).reverse();
    list.prepend(...made.map((each) => each.element));
    entries = [...made, ...entries].slice(0, TAIL_MAX);
    while (list.childElementCount > TAIL_MAX) list.lastElementChild.remove();
    empty.hidden = entries.length > 0;
  };
  const pause = () => {
    isHeld = !isHeld;
    hold.setAttribute("aria-pressed", String(isHeld));
    setText(hold, isHeld ? "Go on" : "Hold");
    if (!isHeld) add(held);
    held = [];
  };
  const take = (message) => {
    seen += 1;
    setText(told, `${counted(seen, "message")} since you look`);
    if (isHeld) held = [...held, message].slice(-TAIL_MAX);
    else add([message]);
  };
  const close = stream(topicPath(name, "/tail"), {}, {
    message: take,
    opened: () => setText(told, "Live"),
    lost: (why) => setText(told, why),
    refused: (error) => setText(told, error.message),
  });
  return { element, close };
}
