// The login: a token, or a user and a password. Kept in this tab, and nowhere else.

import { logInWithPassword, logInWithToken } from "../app/session.js";
import { h, setText } from "../parts/dom.js";

export function login() {
  const token = h("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false" });
  const user = h("input", { name: "username", autocomplete: "username", spellcheck: "false" });
  const password = h("input", { type: "password", name: "password", autocomplete: "current-password" });
  const withToken = h("div", {}, h("label", { class: "field" }, "Token", token));
  const withPassword = h("div", { hidden: true }, h("label", { class: "field" }, "User", user), h("label", { class: "field" }, "Password", password));
  const choices = [
    ["Token", withToken],
    ["Password", withPassword],
  ];
  const buttons = choices.map(([label, part], at) =>
    h("button", { type: "button", "aria-pressed": String(at === 0), onclick: () => choose(part) }, label),
  );
  const choose = (chosen) => {
    choices.forEach(([, part], at) => {
      part.hidden = part !== chosen;
      buttons[at].setAttribute("aria-pressed", String(part === chosen));
    });
    chosen.querySelector("input").focus();
  };
  const problem = h("div", { class: "notice bad", role: "alert", hidden: true });
  const form = h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        if (!withToken.hidden && token.value.trim()) logInWithToken(token.value.trim());
        else if (withToken.hidden && user.value) logInWithPassword(user.value, password.value);
      },
    },
    h("h1", {}, "Log in"),
    problem,
    h("div", { class: "segments", role: "group", "aria-label": "Log in with" }, buttons),
    withToken,
    withPassword,
    h("p", { class: "hint" }, "It is kept until this tab is closed."),
    h("button", { type: "submit", class: "primary" }, "Log in"),
  );
  const element = h("section", { class: "card login" }, form);
  queueMicrotask(() => token.focus());
  const refuse = (text) => {
    problem.hidden = false;
    setText(problem, text);
  };
  return { element, refuse, close() {}, isLogin: true };
}
