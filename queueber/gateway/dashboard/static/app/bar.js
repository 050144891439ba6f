// The bar on top: where one is, how the server is, light or dark, and who is logged in.

import { h, setText, svg } from "../parts/dom.js";

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };
const health = h("span", { class: "health", role: "status" }, "Connecting");

export function topBar(caller, logOut) {
  return [
    h("a", { class: "brand", href: "#/" }, logo(), "Queueber"),
    health,
    h("span", { class: "space" }),
    caller && h("span", { class: "caller", title: caller }, caller),
    h("a", { class: "button plain w2", href: "/docs" }, "API"),
    themeSwitch(),
    logOut && h("button", { type: "button", class: "plain", onclick: logOut }, "Log out"),
  ];
}

// `kind` is "good", "warn", "bad" or "".
export function showHealth(kind, text) {
  health.className = `health ${kind}`;
  setText(health, text);
}

function themeSwitch() {
  const theme = () => document.documentElement.dataset.theme ?? "auto";
  const button = h("button", { type: "button", class: "plain", onclick: () => next() });
  const show = () => {
    setText(button, `◐ ${THEMES[theme()]}`);
    button.setAttribute("aria-label", `Colours: ${THEMES[theme()]}. Change`);
  };
  const next = () => {
    const names = Object.keys(THEMES);
    const chosen = names[(names.indexOf(theme()) + 1) % names.length];
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    localStorage.setItem("queueber-theme", chosen);
    show();
  };
  show();
  return button;
}

function logo() {
  return svg(
    "svg",
    { viewBox: "0 0 32 32", "aria-hidden": "true" },
    svg("rect", { width: 32, height: 32, rx: 7, fill: "#2b62d9" }),
    svg("path", { d: "M8 10h16M8 16h11M8 22h6M20 17l5 4-5 4", fill: "none", stroke: "#fff", "stroke-width": 3, "stroke-linecap": "round", "stroke-linejoin": "round" }),
  );
}
