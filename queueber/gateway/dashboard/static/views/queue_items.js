// Items of a queue, looked at without leasing them; dead letters with why they died.

import { queuePath, request } from "../app/api.js";
import { may } from "../app/rights.js";
import { h, put, setText } from "../parts/dom.js";
import { formSwitch } from "../parts/contents.js";
import { at, entry } from "../parts/facts.js";
import { act } from "./acting.js";

const PER_PAGE = 20;
const SINCE = { ready: "ready since", delayed: "delayed until", leased: "leased until", dead: "dead since" };

export function items(name, { states }) {
  let state = states[0];
  let starts = [""]; // where each page begins
  let following = "";
  let entries = [];
  const list = h("div", { "aria-live": "off" });
  const buttons = states.map((each) =>
    h("button", { type: "button", "aria-pressed": String(each === state), onclick: () => choose(each) }, each[0].toUpperCase() + each.slice(1)),
  );
  const back = h("button", { type: "button", class: "small", onclick: () => turn(-1) }, "Previous");
  const next = h("button", { type: "button", class: "small", onclick: () => turn(1) }, "Next");
  const told = h("span", { role: "status" });
  const element = h(
    "div",
    {},
    h(
      "header",
      { class: "head pages" },
      states.length > 1 && h("div", { class: "segments", role: "group", "aria-label": "State" }, buttons),
      formSwitch(() => entries.forEach((each) => each.update())),
      h("button", { type: "button", class: "small", onclick: () => load() }, "Refresh"),
    ),
    list,
    h("div", { class: "pages" }, told, h("span", { class: "space" }), back, next),
  );

  function choose(each) {
    state = each;
    starts = [""];
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(states[n] === state)));
    load();
  }

  function turn(by) {
    if (by > 0) starts.push(following);
    else starts.pop();
    load();
  }

  async function load() {
    let page;
    try {
      page = await request("GET", queuePath(name, "/items"), { query: { state, after: starts.at(-1), limit: PER_PAGE } });
    } catch (error) {
      if (error.name === "AbortError") return;
      put(list, h("div", { class: "empty" }, error.isForbidden ? "You may not look into this queue." : error.message));
      return;
    }
    following = page.next ?? "";
    entries = page.items.map((item) => shown(item));
    put(list, entries.length ? entries.map((each) => each.element) : h("div", { class: "empty" }, state === "dead" ? "There are no dead letters." : `Nothing is ${state}.`));
    const first = (starts.length - 1) * PER_PAGE;
    setText(told, entries.length ? `${first + 1} to ${first + entries.length}` : "");
    back.disabled = starts.length < 2;
    next.disabled = !following;
    back.hidden = next.hidden = back.disabled && next.disabled;
  }

  function shown(item) {
    const failures = item.attempts ? `${item.attempts} failed ${item.attempts === 1 ? "attempt" : "attempts"}` : "";
    return entry({
      id: item.id,
      base64: item.contents,
      attributes: item.attributes,
      error: item.last_error ?? "",
      facts: [
        at(SINCE[state], item.at_ms),
        item.reason && `died: ${item.reason}`,
        failures,
        item.attempt_times_ms.length > 0 && at("last tried", item.attempt_times_ms.at(-1)),
        item.priority !== 5 && `priority ${item.priority}`,
        item.key && `key ${item.key}`,
        item.batch && `batch ${item.batch}`,
        item.lease && `lease ${item.lease}`,
        at("added", item.added_at_ms),
      ],
      buttons: may("operate", "queues", name) ? itemButtons(item) : [],
    });
  }

  function itemButtons(item) {
    const made = [];
    if (state === "dead") {
      made.push(h("button", { type: "button", class: "small", onclick: () => redrive(item) }, "Redrive"));
    }
    made.push(h("button", { type: "button", class: "small danger", onclick: () => cancel(item) }, "Delete"));
    return made;
  }

  const redrive = (item) =>
    act({
      name, kind: "queues", right: "operate",
      title: "Redrive this dead letter?",
      text: "It becomes ready again, with no failed attempts.",
      action: "Redrive",
      run: () => request("POST", queuePath(name, "/redrive"), { body: { ids: [item.id] } }),
      done: () => "It is ready again.",
    }).then(load);

  const cancel = (item) =>
    act({
      name, kind: "queues", right: "operate",
      title: "Delete this item?",
      text: `${item.id} is deleted, whatever its state. This cannot be undone.`,
      action: "Delete",
      isDangerous: true,
      run: () => request("POST", queuePath(name, "/cancel"), { body: { ids: [item.id] } }),
      done: (answer) => (answer.done[0] ? "The item was deleted." : "The item was no longer there."),
    }).then(load);

  load();
  return { element };
}
