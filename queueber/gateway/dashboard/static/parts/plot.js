// Plots over time, drawn as SVG: axes, hover values, and the same values by keyboard.

import { h, put, setText, svg } from "./dom.js";
import { short, time, timeSeconds } from "./format.js";

const LEFT = 44;
const BOTTOM = 18;
const TOP = 6;
const TICKS = 4;
const SHORT_MS = 15 * 60_000; // below it, times have seconds

// { title, series: [{ name, label, color }], format, isBinary }. `show(history)` draws what the API answers.
export function plot({ title, series, format = short, isBinary = false }) {
  const area = h("div", { class: "area" });
  const said = h("div", { class: "unseen", "aria-live": "polite" });
  const tip = h("div", { class: "tip", hidden: true });
  const chart = svg("svg", { role: "img", tabindex: "0" });
  area.append(chart, tip);
  const legend = series.map(({ label, color }) => h("span", {}, h("i", { class: `key c-${color}` }), label));
  const element = h("figure", { class: "card plot" }, h("figcaption", {}, h("h3", {}, title), h("div", { class: "legend" }, legend)), area, said);

  let history = null;
  let place = null; // where the lines are: { width, height, points, x(), y() }
  let cursor = -1;

  const show = (found) => {
    history = found;
    draw();
  };

  const draw = () => {
    const width = area.clientWidth;
    const height = area.clientHeight;
    if (!width || !history) return;
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const columns = series.map(({ name }) => history.series?.[name] ?? []);
    const points = Math.max(0, ...columns.map((column) => column.length));
    const most = Math.max(0, ...columns.flat().filter(Number.isFinite));
    const top = niceTop(most, isBinary);
    const x = (at) => LEFT + ((width - LEFT - 4) * at) / Math.max(1, points - 1);
    const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - value / top);
    place = { width, height, points, columns, x, y };
    put(chart, axes(place, top), columns.map((column, at) => lines(column, series[at].color, place, at === 0 && series.length < 3)), pointer(place));
    chart.setAttribute("aria-label", `${title}. ${summary(columns)}`);
  };

  const axes = ({ width, height, points, x, y }, top) => {
    const drawn = [];
    for (let at = 0; at <= TICKS; at += 1) {
      const value = (top * at) / TICKS;
      drawn.push(svg("line", { class: "axis", x1: LEFT, x2: width, y1: y(value), y2: y(value) }));
      if (at % 2 === 0) drawn.push(svg("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)));
    }
    const isShort = points * history.step_ms < SHORT_MS;
    const labels = Math.max(2, Math.min(5, Math.floor(width / 110)));
    for (let at = 0; at < labels && points > 1; at += 1) {
      const point = Math.round(((points - 1) * at) / (labels - 1));
      const anchor = at === 0 ? "start" : at === labels - 1 ? "end" : "middle";
      drawn.push(svg("text", { class: "tick", x: x(point), y: height - 3, "text-anchor": anchor }, (isShort ? timeSeconds : time)(timeOf(point))));
    }
    if (points < 2) {
      drawn.push(svg("text", { class: "tick", x: (LEFT + width) / 2, y: height / 2, "text-anchor": "middle" }, "Nothing was recorded yet"));
    }
    return drawn;
  };

  const timeOf = (point) => history.end_ms - (place.points - 1 - point) * history.step_ms;

  const summary = (columns) =>
    series.map(({ label }, at) => `${label}: now ${format(columns[at].at(-1) ?? 0)}, most ${format(Math.max(0, ...columns[at]))}`).join("; ");

  const pointer = ({ height }) => svg("g", { class: "pointer" }, svg("line", { class: "rule", y1: TOP, y2: height - BOTTOM, visibility: "hidden" }));

  const point = (at) => {
    if (!place || place.points < 2) return;
    cursor = Math.max(0, Math.min(place.points - 1, at));
    const group = chart.querySelector(".pointer");
    const left = place.x(cursor);
    const values = place.columns.map((column) => column[cursor - place.points + column.length]);
    put(
      group,
      svg("line", { class: "rule", x1: left, x2: left, y1: TOP, y2: place.height - BOTTOM }),
      values.map((value, n) => Number.isFinite(value) && svg("circle", { class: `dot c-${series[n].color}`, cx: left, cy: place.y(value), r: 3.5 })),
    );
    put(
      tip,
      h("div", { class: "muted" }, timeSeconds(timeOf(cursor))),
      values.map((value, n) => h("div", {}, h("i", { class: `key c-${series[n].color}` }), series[n].label, h("b", {}, Number.isFinite(value) ? format(value) : "–"))),
    );
    tip.hidden = false;
    const isRight = left > place.width / 2;
    tip.style.left = isRight ? "auto" : `${left + 10}px`;
    tip.style.right = isRight ? `${place.width - left + 10}px` : "auto";
  };

  const unpoint = () => {
    tip.hidden = true;
    cursor = -1;
    const group = chart.querySelector(".pointer");
    if (group) put(group);
  };

  chart.addEventListener("pointermove", (event) => {
    if (!place) return;
    const at = (event.clientX - chart.getBoundingClientRect().left - LEFT) / (place.width - LEFT - 4);
    point(Math.round(at * (place.points - 1)));
  });
  chart.addEventListener("pointerleave", unpoint);
  chart.addEventListener("blur", unpoint);
  chart.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    const ends = { Home: 0, End: Infinity };
    if (event.key in steps) point((cursor < 0 ? place.points - 1 : cursor) + steps[event.key]);
    else if (event.key in ends) point(ends[event.key]);
    else return;
    event.preventDefault();
    setText(said, [...tip.children].map((line) => line.textContent).join(" "));
  });
  new ResizeObserver(draw).observe(area);
  return { element, show };
}

function lines(column, color, { points, x, y }, isFilled) {
  if (column.length < 2) return [];
  const first = points - column.length;
  const path = column.map((value, at) => `${at ? "L" : "M"}${x(first + at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const floor = y(0).toFixed(1);
  return [
    isFilled && svg("path", { class: `under c-${color}`, d: `${path}L${x(points - 1).toFixed(1)} ${floor}L${x(first).toFixed(1)} ${floor}Z` }),
    svg("path", { class: `series c-${color}`, d: path }),
  ];
}

// The least of 1, 2, 4, 5, 8, 10 times a power of ten that is not below the value; of sizes in
// bytes, the least power of two.
export function niceTop(value, isBinary = false) {
  if (!(value > 0)) return 1;
  if (isBinary) return Math.max(16, 2 ** Math.ceil(Math.log2(value)));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].find((step) => step * power >= value) * power;
}

export function sparkline(label) {
  const under = svg("path", { class: "under" });
  const line = svg("path", { class: "series" });
  const element = svg("svg", { class: "sparkline c-ready", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img" }, under, line);
  const show = (values = []) => {
    const most = Math.max(...values, 0);
    element.setAttribute("aria-label", values.length ? `${label}: now ${short(values.at(-1))}, most ${short(most)}` : `${label}: not known`);
    if (values.length < 2) {
      line.setAttribute("d", "");
      under.setAttribute("d", "");
      return;
    }
    const y = (value) => 22 - (most ? (20 * value) / most : 0);
    const path = values.map((value, at) => `${at ? "L" : "M"}${((120 * at) / (values.length - 1)).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    line.setAttribute("d", path);
    under.setAttribute("d", `${path}L120 24L0 24Z`);
  };
  show();
  return { element, show };
}
