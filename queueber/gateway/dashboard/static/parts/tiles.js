// Large numbers in a row.

import { h, setText } from "./dom.js";

// `wanted` has [name, label, color]. `show` takes texts by name, or { text, kind }.
export function tiles(wanted) {
  const values = new Map();
  const made = wanted.map(([name, label, color]) => {
    const value = h("dd", {}, "–");
    const tile = h("div", { class: "tile", "data-tile": name }, h("dt", {}, color && h("i", { class: `key c-${color}` }), label), value);
    values.set(name, { tile, value });
    return tile;
  });
  const show = (found) => {
    for (const [name, given] of Object.entries(found)) {
      const { tile, value } = values.get(name);
      const { text, kind = "" } = typeof given === "string" ? { text: given } : given;
      setText(value, text);
      tile.className = `tile ${kind}`;
    }
  };
  return { element: h("dl", { class: "tiles" }, made), show };
}
