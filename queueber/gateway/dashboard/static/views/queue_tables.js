// Leases with their holders, batches with their receipts, and all numbers of a queue.

import { h, keyed, put, setText } from "../parts/dom.js";
import { ago, bytes, count, duration, exact, moment } from "../parts/format.js";

function table(headings, what) {
  const body = h("tbody");
  const empty = h("div", { class: "empty" }, `Looking for ${what} …`);
  const more = h("div", { class: "pages", hidden: true });
  const grid = h("table", {}, h("thead", {}, h("tr", {}, headings.map(([label, kind = ""]) => h("th", { scope: "col", class: kind }, label)))), body);
  const element = h("div", {}, h("div", { class: "scroll" }, grid), empty, more);
  const show = (rows, keyOf, make, isMore) => {
    keyed(body, rows, keyOf, make);
    grid.hidden = !rows.length;
    empty.hidden = rows.length > 0;
    setText(empty, `There are no ${what}.`);
    more.hidden = !isMore;
    setText(more, `The first ${rows.length}. The command line and the API have the others.`);
  };
  return { element, show };
}

export function leases() {
  const made = table([["Holder"], ["Items", "n"], ["Expires", "n"], ["Polled", "n w2"], ["Lease", "w3"]], "leases");
  const make = (lease) => {
    const items = h("td", { class: "n" });
    const expires = h("td", { class: "n" });
    const polled = h("td", { class: "n w2" });
    const holder = h("td", { class: "wrap" }, lease.holder || h("span", { class: "muted" }, "not known"));
    return {
      element: h("tr", {}, holder, items, expires, polled, h("td", { class: "id w3" }, lease.lease)),
      update: (now) => {
        setText(items, count(now.items));
        setText(expires, ago(now.expires_at_ms));
        expires.title = moment(now.expires_at_ms);
        setText(polled, ago(now.polled_at_ms));
      },
    };
  };
  let latest = null;
  const draw = () => latest && made.show(latest.leases, (lease) => lease.lease, make, latest.more);
  const timer = setInterval(draw, 1000);
  return {
    element: made.element,
    tell({ leases: found }) {
      latest = found ?? latest;
      draw();
    },
    close: () => clearInterval(timer),
  };
}

export function batches() {
  const made = table([["Batch"], ["Progress"], ["Added", "n"], ["Done", "n"], ["Dead", "n"], ["Live", "n"], ["Receipt", "w2"]], "batches");
  const make = (batch) => {
    const bar = h("progress", { "aria-label": `Progress of ${batch.batch}` });
    const share = h("span", { class: "hint" });
    const numbers = ["added", "done", "dead", "live"].map((field) => [field, h("td", { class: "n" })]);
    const receipt = h("td", { class: "w2" });
    return {
      element: h("tr", {}, h("td", { class: "name" }, batch.batch), h("td", {}, bar, " ", share), numbers.map(([, cell]) => cell), receipt),
      update: (now) => {
        const ended = now.done + now.dead;
        bar.max = Math.max(1, now.added);
        bar.value = now.added ? ended : 1;
        bar.classList.toggle("has-dead", now.dead > 0);
        setText(share, `${now.added ? Math.floor((100 * ended) / now.added) : 100}%`);
        for (const [field, cell] of numbers) {
          setText(cell, count(now[field]));
          cell.classList.toggle("bad", field === "dead" && now.dead > 0);
        }
        put(receipt, now.complete ? h("details", {}, h("summary", {}, h("span", { class: "badge good" }, "complete")), h("div", { class: "mono wrap" }, `added ${now.added_digest}`), h("div", { class: "mono wrap" }, `done ${now.done_digest}`), h("div", { class: "mono wrap" }, `dead ${now.dead_digest}`)) : h("span", { class: "muted" }, "under way"));
      },
    };
  };
  return {
    element: made.element,
    tell({ batches: found }) {
      if (found) made.show(found.batches, (batch) => batch.number, make, found.more);
    },
  };
}

const NUMBERS = [
  ["created_at_ms", "Created", moment],
  ["contents_bytes", "Bytes of contents", bytes],
  ["leases", "Leases", exact],
  ["batches", "Batches", exact],
  ["results", "Results", exact],
  ["result_bytes", "Bytes of results", bytes],
  ["added_total", "Added", exact],
  ["duplicates_total", "Duplicates", exact],
  ["polled_total", "Polled", exact],
  ["completed_total", "Completed", exact],
  ["removed_total", "Removed", exact],
  ["failed_total", "Failed", exact],
  ["released_total", "Released", exact],
  ["expired_total", "Expired", exact],
  ["extended_total", "Extended", exact],
  ["died_total", "Died", exact],
  ["redriven_total", "Redriven", exact],
  ["cancelled_total", "Cancelled", exact],
  ["unclaimed_total", "Died as nobody leased them in time", exact],
  ["dead_dropped_total", "Dropped as dead for long", exact],
];
const limit = (number) => (number ? exact(number) : "none");
const SETTINGS = [
  ["lease_ms", "Lease", duration],
  ["attempts_max", "Attempts, limit", limit],
  ["items_max", "Items, limit", limit],
  ["bytes_max", "Bytes, limit", (number) => (number ? bytes(number) : "none")],
  ["item_bytes_max", "Bytes of an item, limit", (number) => (number ? bytes(number) : "the server's")],
  ["dedup_window_ms", "Keys are remembered", duration],
  ["result_age_ms", "Results are kept", (ms) => (ms ? duration(ms) : "for good")],
  ["result_bytes_max", "Bytes of results, limit", (number) => (number ? bytes(number) : "none")],
  ["batches_max", "Batches, limit", limit],
  ["batch_keep_ms", "Complete batches are kept", duration],
  ["isolation", "Isolation", (is) => (is ? "on" : "off")],
  ["concurrency_max", "Leased at once, limit", limit],
  ["rate_items", "Rate, items", limit],
  ["rate_ms", "Rate, in a time of", (ms) => duration(ms || 1000)],
  ["cap_by", "Capped by", (name) => name || "none"],
  ["cap_by_concurrency_max", "Leased at once of each, limit", limit],
  ["cap_by_rate_items", "Rate of each, items", limit],
  ["cap_by_rate_ms", "Rate of each, in a time of", (ms) => duration(ms || 1000)],
  ["dead_age_ms", "Dead letters are kept", (ms) => (ms ? duration(ms) : "for good")],
];

export function numbers() {
  const element = h("div", { class: "inside stack" });
  const pairs = (rows, of) => h("dl", { class: "pairs" }, rows.map(([name, label, show]) => h("div", {}, h("dt", {}, label), h("dd", {}, show(of[name])))));
  return {
    element,
    tell({ stats }) {
      if (!stats) return;
      const { settings } = stats;
      const backoff = settings.backoff_ms.length
        ? settings.backoff_ms.map(duration).join(", ")
        : `${duration(settings.backoff_base_ms)} × ${settings.backoff_factor}ⁿ, at most ${duration(settings.backoff_cap_ms)}`;
      put(element, h("h3", {}, "Since the queue was created"), pairs(NUMBERS, stats), h("h3", {}, "Settings"), pairs([...SETTINGS, ["backoff", "Retries after", (text) => text]], { ...settings, backoff }));
    },
  };
}
