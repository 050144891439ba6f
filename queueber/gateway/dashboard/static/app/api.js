// Calls to the gateway's API. Errors are those of the server, with its words.

import { authorization, needLogin } from "./session.js";

const UNAUTHENTICATED = 401;

export class ApiError extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }

  get isForbidden() {
    return this.status === 403;
  }

  get isMissing() {
    return this.status === 404;
  }
}

export function headers(more = {}) {
  const header = authorization();
  return header ? { authorization: header, ...more } : more;
}

export async function request(method, path, { query, body, signal } = {}) {
  const asked = new URLSearchParams(
    Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== ""),
  );
  const address = asked.size ? `${path}?${asked}` : path;
  // Without this, a browser asks for a password of its own, and goes on sending it.
  const options = { method, signal, headers: headers(), credentials: "omit" };
  if (body !== undefined) {
    options.headers = headers({ "content-type": "application/json" });
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "UNAVAILABLE", "The gateway cannot be reached.");
  }
  if (!response.ok) throw await errorOf(response);
  return response.status === 204 ? null : await response.json();
}

export async function errorOf(response) {
  const problem = await response.json().catch(() => ({}));
  if (response.status === UNAUTHENTICATED) needLogin();
  return new ApiError(response.status, problem.code ?? "", problem.detail ?? response.statusText);
}

export const queuePath = (name, rest = "") => `/v1/queues/${encodeURIComponent(name)}${rest}`;
export const topicPath = (name, rest = "") => `/v1/topics/${encodeURIComponent(name)}${rest}`;
export const groupPath = (topic, group, rest = "") =>
  topicPath(topic, `/groups/${encodeURIComponent(group)}${rest}`);
