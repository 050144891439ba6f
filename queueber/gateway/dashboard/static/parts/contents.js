// Contents of items and messages: bytes, shown as text, JSON or hex. They are untrusted.

import { h, put, setText } from "./dom.js";
import { bytes as size } from "./format.js";

const SHOWN_BYTES = 16 * 1024;
const HEX_BYTES = 2 * 1024;
const FORMS = ["text", "json", "hex"];

let form = "text";

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

// The switch that all contents on a page share.
export function formSwitch(onChange) {
  const buttons = FORMS.map((each) =>
    h("button", { type: "button", "aria-pressed": String(each === form), onclick: () => choose(each) }, each === "json" ? "JSON" : each === "hex" ? "Hex" : "Text"),
  );
  const choose = (each) => {
    form = each;
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(FORMS[at] === form)));
    onChange();
  };
  return h("div", { class: "segments", role: "group", "aria-label": "Show contents as" }, buttons);
}

export function contents(base64) {
  const all = bytesOf(base64);
  const pre = h("pre", { tabindex: "0", "aria-label": "Contents" });
  const note = h("span", { class: "hint" });
  const update = () => {
    const { text, told } = shown(all);
    setText(pre, text);
    put(note, told);
  };
  update();
  return { element: h("div", {}, pre, note), update };
}

function shown(all) {
  if (all.length === 0) return { text: "(empty)", told: "" };
  const limit = form === "hex" ? HEX_BYTES : SHOWN_BYTES;
  const part = all.subarray(0, limit);
  const cut = all.length > limit ? `The first ${size(limit)} of ${size(all.length)}.` : "";
  if (form === "hex") return { text: hexDump(part), told: cut };
  const text = new TextDecoder("utf-8").decode(part);
  if (form === "text") return { text, told: cut };
  if (cut) return { text, told: `${cut} Too long to be shown as JSON.` };
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), told: "" };
  } catch {
    return { text, told: "This is not JSON." };
  }
}

export function hexDump(part) {
  const lines = [];
  for (let at = 0; at < part.length; at += 16) {
    const row = [...part.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0"));
    const letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."));
    const left = hex.slice(0, 8).join(" ").padEnd(23);
    lines.push(`${at.toString(16).padStart(6, "0")}  ${left}  ${hex.slice(8).join(" ").padEnd(23)}  ${letters.join("")}`);
  }
  return lines.join("\n");
}
