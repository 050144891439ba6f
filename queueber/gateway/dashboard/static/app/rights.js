// What the caller may do, to show no button that the server would refuse. The server decides.

import { request } from "./api.js";

// As `queueber/auth/roles.py` has them; a test compares the two.
export const ROLES = {
  producer: ["add"],
  worker: ["work"],
  reader: ["read", "observe"],
  operator: ["read", "operate", "observe"],
  loader: ["load", "add", "read"],
  admin: ["add", "work", "read", "operate", "load", "administer", "observe", "backup"],
  service: ["add", "work", "read", "observe"],
  dba: ["add", "work", "read", "operate", "load", "administer", "observe"],
  system: ["add", "work", "read", "operate", "load", "administer", "observe", "backup"],
  user: ["add"],
};

let caller = null;
const refused = new Set();

export async function learnRights() {
  caller = null;
  refused.clear();
  try {
    caller = await request("GET", "/v1/whoami");
  } catch (error) {
    if (error.status === 401) throw error;
  }
  return caller;
}

export const callerName = () => caller?.name ?? "";

// `kind` is "queues" or "topics".
export function may(action, kind, name) {
  if (refused.has(`${action} ${kind} ${name}`)) return false;
  if (!caller?.grants) return true;
  return caller.grants.some(
    (grant) => (ROLES[grant.role] ?? []).includes(action) && grant[kind].some((pattern) => matches(pattern, name)),
  );
}

export function wasRefused(action, kind, name) {
  refused.add(`${action} ${kind} ${name}`);
}

function matches(pattern, name) {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === name;
  const last = parts.pop();
  if (!name.startsWith(parts[0])) return false;
  let at = parts[0].length;
  for (const part of parts.slice(1)) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
