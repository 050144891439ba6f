// Parts of a page of which one is shown; which one is in the address.

import { h, put, setText } from "./dom.js";
import { count as shown } from "./format.js";

// `parts` has [name, label, make]. What `make` returns has an element, and may have tell(what),
// which gets what comes live, and close().
export function tabs(base, first, parts) {
  const counts = new Map();
  const links = parts.map(([name, label]) => {
    const number = h("span", { class: "muted" });
    counts.set(name, number);
    return h("a", { href: `${base}/${name}` }, label, " ", number);
  });
  const place = h("div");
  const element = h("div", {}, h("nav", { class: "tabs", "aria-label": "Parts" }, links), place);
  let part = null;
  let chosen = "";
  const latest = {};

  function choose(name) {
    const at = Math.max(0, parts.findIndex(([each]) => each === name));
    if (parts[at][0] === chosen) return;
    chosen = parts[at][0];
    part?.close?.();
    part = parts[at][2]();
    put(place, part.element);
    links.forEach((link, n) => (n === at ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    part.tell?.(latest);
  }

  choose(first);
  return {
    element,
    choose,
    count: (name, number) => setText(counts.get(name), number ? shown(number) : ""),
    tell(what) {
      for (const [name, value] of Object.entries(what)) if (value !== undefined) latest[name] = value;
      part.tell?.(what);
    },
    close: () => part?.close?.(),
  };
}
