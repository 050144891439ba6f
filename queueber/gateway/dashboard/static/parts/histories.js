// Plots of one history, over the last hour or day.

import { request } from "../app/api.js";
import { h } from "./dom.js";

const EVERY_MS = { hour: 10_000, day: 60_000 };

export function histories(path, plots) {
  let span = "hour";
  let timer = 0;
  const buttons = Object.keys(EVERY_MS).map((each) =>
    h("button", { type: "button", "aria-pressed": String(each === span), onclick: () => choose(each) }, `Last ${each}`),
  );
  const hint = h("span", { class: "hint" });
  const element = h(
    "section",
    { class: "stack", "aria-label": "Over time" },
    h("div", { class: "head" }, h("h2", {}, "Over time"), h("div", { class: "segments", role: "group", "aria-label": "Span" }, buttons), hint),
    h("div", { class: "plots" }, plots.map((plot) => plot.element)),
  );

  async function load() {
    clearTimeout(timer);
    const wanted = span;
    try {
      const history = await request("GET", path, { query: { span: wanted } });
      if (wanted !== span) return;
      plots.forEach((plot) => plot.show(history));
    } catch (error) {
      if (error.name !== "AbortError") hint.textContent = error.message;
    }
    timer = setTimeout(load, EVERY_MS[span]);
  }

  function choose(each) {
    span = each;
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(Object.keys(EVERY_MS)[at] === span)));
    load();
  }

  load();
  return { element, close: () => clearTimeout(timer) };
}
