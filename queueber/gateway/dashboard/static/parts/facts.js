// Facts about one item or message, and its contents.

import { h } from "./dom.js";
import { ago, moment } from "./format.js";
import { contents } from "./contents.js";

// A row with an id, facts, an error and contents. `facts` are texts; empty ones are left out.
export function entry({ id, facts, attributes = {}, error = "", base64, buttons = [] }) {
  const shown = contents(base64);
  const named = Object.entries(attributes).map(([name, value]) => h("span", {}, `${name}=${value}`));
  const element = h(
    "div",
    { class: "item" },
    h("div", { class: "facts" }, h("span", { class: "id" }, id), facts.filter(Boolean).map((fact) => h("span", {}, fact)), named, h("span", { class: "space" }), buttons),
    error && h("p", { class: "error" }, error),
    shown.element,
  );
  return { element, update: shown.update };
}

export const at = (word, ms) => `${word} ${moment(ms)} (${ago(ms)})`;
