// What an operator does with a queue. Every act is asked about first.

import { queuePath, request } from "../app/api.js";
import { may } from "../app/rights.js";
import { h, put } from "../parts/dom.js";
import { counted } from "../parts/format.js";
import { act } from "./acting.js";
import { settingsOf, settingsFields } from "./queue_settings.js";

const STATES = [
  ["ready", "Ready"],
  ["delayed", "Delayed"],
  ["leased", "Leased"],
  ["dead", "Dead letters"],
];
const DEFAULT_QUEUE = "default";

export function actions(name) {
  const element = h("div", { class: "buttons", role: "group", "aria-label": "Actions" });
  let stats = null;
  let drawn = "";
  const common = { name, kind: "queues", refused: () => draw() };
  const post = (verb, body) => request("POST", queuePath(name, verb), { body });

  const pause = () =>
    act({
      ...common, right: "operate",
      title: `Pause ${name}?`,
      text: "Polls get nothing. Items can still be added, and those that are leased can be finished.",
      fields: [{ name: "minutes", label: "For how many minutes", type: "number", min: 0.1, max: 500_000, step: "any", hint: "Empty: until it is resumed." }],
      action: "Pause",
      run: ({ minutes }) => post("/pause", minutes ? { pause_ms: Math.round(minutes * 60_000) } : {}),
      done: () => `${name} is paused.`,
    });
  const resume = () =>
    act({
      ...common, right: "operate",
      title: `Resume ${name}?`,
      text: "Polls are answered again.",
      action: "Resume",
      run: () => post("/resume"),
      done: () => `${name} answers polls again.`,
    });
  const redrive = () =>
    act({
      ...common, right: "operate",
      title: `Redrive ${counted(stats.dead, "dead letter")}?`,
      text: "They become ready again, with no failed attempts.",
      action: "Redrive all",
      run: () => post("/redrive", {}),
      done: ({ items }) => `${counted(items, "item")} redriven.`,
    });
  const purge = () =>
    act({
      ...common, right: "operate",
      title: `Purge ${name}?`,
      text: "All items of the state are deleted. This cannot be undone.",
      fields: [{ name: "state", label: "State", options: STATES, value: stats.dead ? "dead" : "ready" }],
      typed: name,
      action: "Purge",
      isDangerous: true,
      run: ({ state }) => post("/purge", { state }),
      done: ({ items }) => `${counted(items, "item")} purged.`,
    });
  const configure = () =>
    act({
      ...common, right: "administer",
      title: `Settings of ${name}`,
      fields: settingsFields(stats.settings),
      action: "Save",
      run: (given) => request("PATCH", queuePath(name), { body: settingsOf(given) }),
      done: () => `The settings of ${name} were changed.`,
    });
  const remove = async () => {
    const isDone = await act({
      ...common, right: "administer",
      title: `Delete ${name}?`,
      text: "The queue is deleted with all its items, results and batches. This cannot be undone.",
      typed: name,
      action: "Delete the queue",
      isDangerous: true,
      run: () => request("DELETE", queuePath(name)),
      done: () => `${name} was deleted.`,
    });
    if (isDone) location.hash = "#/";
  };

  const button = (label, onclick, kind = "") => h("button", { type: "button", class: kind, onclick }, label);
  function draw() {
    if (!stats) return;
    const mayOperate = may("operate", "queues", name);
    const mayAdminister = may("administer", "queues", name);
    const wanted = JSON.stringify([mayOperate, mayAdminister, stats.paused_until_ms > 0, stats.dead > 0]);
    if (wanted === drawn) return;
    drawn = wanted;
    put(
      element,
      mayOperate && [
        stats.paused_until_ms ? button("Resume", resume, "primary") : button("Pause", pause),
        stats.dead > 0 && button("Redrive", redrive),
        button("Purge", purge, "danger"),
      ],
      mayAdminister && [button("Settings", configure), name !== DEFAULT_QUEUE && button("Delete", remove, "danger")],
    );
  }

  return {
    element,
    show(now) {
      stats = now;
      draw();
    },
  };
}
