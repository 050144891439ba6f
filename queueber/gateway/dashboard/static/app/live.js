// Server-sent events, read with fetch: an EventSource could not send the Authorization header.

import { errorOf, headers } from "./api.js";

const RETRY_MS = [300, 1000, 2000, 5000];

// Opens a stream and keeps it open. `on` has a function for each event, and may have `opened`,
// `lost` (told why) and `refused` (told an ApiError; the stream is not opened again).
// Returns a function that closes it.
export function stream(path, query, on) {
  const ending = new AbortController();
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  follow(`${path}?${asked}`, on, ending.signal);
  return () => ending.abort();
}

async function follow(address, on, signal) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await fetch(address, { headers: headers({ accept: "text/event-stream" }), credentials: "omit", signal });
      if (!response.ok) {
        const error = await errorOf(response);
        if (response.status < 500 && response.status !== 429) {
          on.refused?.(error);
          return;
        }
        throw error;
      }
      failures = 0;
      on.opened?.();
      await dispatch(response.body, on, signal);
      if (signal.aborted) return;
      on.lost?.("The gateway has ended the stream.");
    } catch (error) {
      if (signal.aborted) return;
      on.lost?.(error.status ? error.message : "The gateway cannot be reached.");
    }
    await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  }
}

async function dispatch(body, on, signal) {
  let event = "message";
  let data = [];
  for await (const line of linesOf(body)) {
    if (signal.aborted) return;
    if (line === "") {
      if (data.length) on[event]?.(JSON.parse(data.join("\n")));
      event = "message";
      data = [];
    } else if (line.startsWith("event:")) {
      event = line.slice(6).trim();
    } else if (line.startsWith("data:")) {
      data.push(line.slice(5).trimStart());
    }
  }
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r/);
      rest = lines.pop();
      yield* lines;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Rows that come as arrays with a list of fields; `all` says that these are all rows.
export class Rows {
  constructor() {
    this.byName = new Map();
  }

  take({ fields, all, rows }) {
    if (all) this.byName.clear();
    for (const row of rows) {
      const named = Object.fromEntries(fields.map((field, at) => [field, row[at]]));
      this.byName.set(named.name, named);
    }
  }
}
