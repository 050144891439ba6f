// The live stream of a view, with the state of the server in the bar on top.

import { showHealth } from "./bar.js";
import { stream } from "./live.js";
import { duration } from "../parts/format.js";
import { toast } from "../parts/dialog.js";

const FINAL = new Set(["NOT_FOUND", "PERMISSION_DENIED"]);

// `on` has a function for each subject, `gone` for what is not
// there or not for this caller, and `refused` if there is no stream at all.
export function watch(query, on) {
  const told = new Set();
  return stream("/live", query, {
    ...on,
    server: ({ rows }) => {
      for (const [name, value] of rows) if (name === "server") showServer(value);
      on.server?.(rows);
    },
    problem: ({ subject, problem }) => {
      if (problem.code === "UNAVAILABLE") showHealth("bad", "The server does not answer");
      else if (on.gone && FINAL.has(problem.code)) on.gone(problem.detail);
      else if (!told.has(subject)) toast(problem.detail, { isBad: true });
      told.add(subject);
    },
    opened: () => on.opened?.(),
    lost: (why) => showHealth("bad", why),
    refused: (error) => on.refused?.(error),
  });
}

function showServer(server) {
  const since = server.started_at_ms ? `, up ${duration(Date.now() - server.started_at_ms)}` : "";
  if (server.refuses_writes) showHealth("warn", `Refuses writes: ${server.refuses_writes}`);
  else showHealth("good", `${server.version}${since}`);
}

// Rows of name and value, as the views of one queue or topic get them.
export function values(rows) {
  return Object.fromEntries(rows);
}
