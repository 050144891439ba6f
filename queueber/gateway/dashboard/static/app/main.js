// Starts the dashboard: the bar on top, which view the address names, and the login.

import { callerName, learnRights } from "./rights.js";
import { authorization, forget, logOut, session } from "./session.js";
import { showHealth, topBar } from "./bar.js";
import { put } from "../parts/dom.js";
import { toast } from "../parts/dialog.js";
import { login } from "../views/login.js";
import { overview } from "../views/overview.js";
import { queue } from "../views/queue.js";
import { topic } from "../views/topic.js";

const main = document.getElementById("main");
let view = null; // { element, close(), tab?(name) }
let shown = "";
const NOT_ACCEPTED = "The server does not accept this, or no longer.";

// "#/queues/a%2Fb/leases" is ["queues", "a/b", "leases"].
function address() {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return [""];
  }
}

function route() {
  if (location.hash === "#main") return;
  const [kind = "", name = "", tab = ""] = address();
  const subject = `${kind}/${name}`;
  if (view && shown === subject && view.tab) {
    view.tab(tab);
    return;
  }
  shown = subject;
  if (kind === "queues" && name) open(queue(name, tab), name);
  else if (kind === "topics" && name) open(topic(name, tab), name);
  else open(overview(), "");
}

function open(next, title) {
  const isFirst = view === null;
  view?.close();
  view = next;
  document.title = title ? `${title} · Queueber` : "Queueber";
  put(main, next.element);
  window.scrollTo(0, 0);
  if (!isFirst) main.focus({ preventScroll: true });
}

function askForLogin() {
  const had = authorization() !== "";
  forget();
  if (view?.isLogin) {
    if (had) view.refuse(NOT_ACCEPTED);
    return;
  }
  shown = "";
  showHealth("", "Log in to see the server");
  put(document.getElementById("bar"), topBar("", null));
  open(login(), "Log in");
  if (had) view.refuse(NOT_ACCEPTED);
}

async function start() {
  try {
    await learnRights();
  } catch {
    return; // a login is asked for
  }
  view?.close();
  view = null;
  shown = "";
  put(document.getElementById("bar"), topBar(callerName(), authorization() ? logOut : null));
  route();
}

session.addEventListener("login", askForLogin);
session.addEventListener("changed", () => {
  if (authorization()) start();
});
window.addEventListener("hashchange", () => {
  if (!view?.isLogin) route();
});
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name !== "AbortError") toast(String(event.reason?.message ?? event.reason), { isBad: true });
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select, textarea, dialog");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector("input[type=search]");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});
start();
