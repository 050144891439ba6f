// Questions before anything happens, and short notes of what did.

import { h } from "./dom.js";

const TOAST_MS = 6000;
const TOASTS_MAX = 4;

export function toast(text, { isBad = false } = {}) {
  const place = document.getElementById("toasts");
  const note = h("div", { class: isBad ? "toast bad" : "toast" }, text);
  place.append(note);
  place.dataset.told = String(Number(place.dataset.told ?? 0) + 1);
  while (place.childElementCount > TOASTS_MAX) place.firstElementChild.remove();
  setTimeout(() => note.remove(), TOAST_MS);
}

// Asks, and resolves to the values of the fields, or null. A field is { name, label, value, type,
// options, hint, required }. With `typed`, the button works once that text was typed.
export function ask({ title, text = "", action, isDangerous = false, fields = [], typed = "" }) {
  return new Promise((resolve) => {
    const inputs = fields.map(inputOf);
    const check = typed && h("input", { autocomplete: "off", spellcheck: "false", oninput: () => allow() });
    const submit = h("button", { type: "submit", class: isDangerous ? "primary danger" : "primary", disabled: Boolean(typed) }, action);
    const allow = () => {
      submit.disabled = check.value !== typed;
    };
    const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    let answer = null;
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: (event) => {
          event.preventDefault();
          if (submit.disabled) return;
          answer = Object.fromEntries(fields.map((field, at) => [field.name, valueOf(field, inputs[at])]));
          dialog.close();
        },
      },
      h("h2", { id: "dialog-title" }, title),
      text && h("div", {}, text),
      fields.length > 0 && h("div", { class: "fields" }, fields.map((field, at) => labelled(field, inputs[at]))),
      check && h("label", { class: "field" }, h("span", {}, "Type ", h("b", {}, typed), " to confirm"), check),
      h("div", { class: "buttons" }, cancel, submit),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", onclose: () => finish() }, form);
    const finish = () => {
      dialog.remove();
      resolve(answer);
    };
    document.body.append(dialog);
    dialog.showModal();
    (check || inputs[0] || cancel).focus();
  });
}

function inputOf(field) {
  if (field.options) {
    return h("select", {}, field.options.map(([value, label]) => h("option", { value, selected: value === field.value }, label)));
  }
  if (field.type === "checkbox") return h("input", { type: "checkbox", checked: field.value });
  const { type = "text", value = "", min, max, step, placeholder, required } = field;
  return h("input", { type, value, min, max, step, placeholder, required, autocomplete: "off" });
}

function valueOf(field, input) {
  if (field.type === "checkbox") return input.checked;
  if (field.type === "number") return input.value === "" ? null : Number(input.value);
  return input.value;
}

function labelled(field, input) {
  if (field.type === "checkbox") return h("label", { class: "check" }, input, field.label);
  return h("label", { class: "field" }, field.label, input, field.hint && h("span", { class: "hint" }, field.hint));
}
