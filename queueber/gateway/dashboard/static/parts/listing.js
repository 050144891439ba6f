// A table of many rows: filter, sort, pages, and a sparkline each. Rows stay in place while their
// numbers change.

import { h, keyed, put, setText } from "./dom.js";
import { counted } from "./format.js";
import { sparkline } from "./plot.js";

// Columns: { name, label, show, rank, link, badge, isBad, isSpark }. With `onPrefix` the server
// filters and pages: it is told a prefix and the name after which the page begins.
export function listing({ noun, columns, perPage, onPage, onPrefix }) {
  let all = [];
  let page = 0;
  let sort = { name: "name", isDown: false };
  let before = [""]; // of the server's pages: where each begins
  const filter = h("input", { type: "search", placeholder: onPrefix ? "Begins with …" : "Filter …", "aria-label": `Filter ${noun}s`, oninput: () => filtered() });
  const body = h("tbody");
  const heads = columns.map((column) => head(column));
  const empty = h("div", { class: "empty", hidden: true });
  const told = h("span", { role: "status" });
  const back = h("button", { type: "button", class: "small", onclick: () => turn(-1) }, "Previous");
  const next = h("button", { type: "button", class: "small", onclick: () => turn(1) }, "Next");
  const pages = h("div", { class: "pages" }, told, h("span", { class: "space" }), back, next);
  const element = h(
    "section",
    { class: "card", "aria-label": `${noun}s` },
    h("header", {}, h("h2", {}, `${noun[0].toUpperCase()}${noun.slice(1)}s`), h("span", { class: "space" }), filter),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)),
    empty,
    pages,
  );

  function head({ name, label, rank = 1, isSpark }) {
    const kind = `w${rank}${name === "name" || isSpark ? "" : " n"}`;
    if (isSpark) return h("th", { scope: "col", class: kind }, label);
    return h("th", { scope: "col", class: kind }, h("button", { type: "button", onclick: () => sortBy(name) }, label));
  }

  function sortBy(name) {
    sort = { name, isDown: sort.name === name ? !sort.isDown : name !== "name" };
    page = 0;
    draw();
  }

  let waiting = 0;
  function filtered() {
    page = 0;
    if (!onPrefix) return draw();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      before = [""];
      onPrefix(filter.value, "");
    }, 250);
  }

  function turn(by) {
    if (!onPrefix) {
      page += by;
      return draw();
    }
    if (by > 0) before.push(all.at(-1)?.name ?? "");
    else before.pop();
    onPrefix(filter.value, before.at(-1));
  }

  const shown = () => {
    const text = filter.value.toLowerCase();
    const found = onPrefix || !text ? all.slice() : all.filter((row) => row.name.toLowerCase().includes(text));
    const sign = sort.isDown ? -1 : 1;
    const of = (row) => row[sort.name];
    found.sort((a, b) => (of(a) < of(b) ? -sign : of(a) > of(b) ? sign : a.name < b.name ? -1 : 1));
    return found;
  };

  let onScreen = [];
  function draw() {
    const found = shown();
    const count = Math.max(1, Math.ceil(found.length / perPage));
    page = Math.max(0, Math.min(page, count - 1));
    onScreen = onPrefix ? found : found.slice(page * perPage, (page + 1) * perPage);
    keyed(body, onScreen, (row) => row.name, makeRow);
    heads.forEach((cell, at) => {
      const isSorted = columns[at].name === sort.name;
      if (isSorted) cell.setAttribute("aria-sort", sort.isDown ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    empty.hidden = found.length > 0;
    setText(empty, filter.value ? `No ${noun} matches.` : `There is no ${noun} yet.`);
    const from = page * perPage;
    const range = found.length > perPage && !onPrefix ? `${from + 1} to ${Math.min(from + perPage, found.length)} of ` : "";
    setText(told, `${range}${counted(found.length, noun)}`);
    back.disabled = onPrefix ? before.length < 2 : page === 0;
    next.disabled = onPrefix ? found.length < perPage : page >= count - 1;
    back.hidden = next.hidden = back.disabled && next.disabled;
    onPage?.();
  }

  const sparks = new Map();
  function makeRow(row) {
    const cells = columns.map((column) => cellOf(column, row));
    return {
      element: h("tr", { "data-name": row.name }, cells.map((cell) => cell.element)),
      update: (now) => cells.forEach((cell) => cell.update(now)),
    };
  }

  function cellOf({ name, rank = 1, show, link, badge, isBad, isSpark }, row) {
    if (isSpark) {
      const spark = sparkline(row.name);
      sparks.set(row.name, spark);
      return { element: h("td", { class: `spark w${rank}` }, spark.element), update() {} };
    }
    if (link) {
      const note = h("span", { class: "badge warn", hidden: true });
      const element = h("td", { class: "name" }, h("a", { href: link(row) }, row.name), " ", note);
      return {
        element,
        update: (now) => {
          const text = badge?.(now);
          note.hidden = !text;
          setText(note, text || "");
        },
      };
    }
    const element = h("td", { class: `n w${rank}` });
    return {
      element,
      update: (now) => {
        setText(element, show(now[name]));
        element.classList.toggle("zero", now[name] === 0);
        element.classList.toggle("bad", Boolean(isBad?.(now[name])));
      },
    };
  }

  draw();
  return {
    element,
    show(rows) {
      all = rows;
      draw();
    },
    names: () => onScreen.map((row) => row.name),
    sparklines(found) {
      for (const row of onScreen) sparks.get(row.name)?.show(found[row.name]);
      const known = new Set(onScreen.map((row) => row.name));
      for (const name of sparks.keys()) if (!known.has(name)) sparks.delete(name);
    },
  };
}
