// Numbers, durations, sizes and times as people read them.

const grouped = new Intl.NumberFormat("en-US");
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const date = new Intl.DateTimeFormat("en-CA");
const NEVER_MS = 2 ** 53;

export function count(number) {
  if (number < 1e6) return grouped.format(number);
  return number < 1e9 ? `${(number / 1e6).toPrecision(4)}M` : `${(number / 1e9).toPrecision(4)}G`;
}

export function exact(number) {
  return grouped.format(number);
}

// Short, for axes and rates: 0.25, 12.5, 1.2k.
export function short(number) {
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size >= 1e9) return `${trimmed(number / 1e9)}G`;
  if (size >= 1e6) return `${trimmed(number / 1e6)}M`;
  if (size >= 1e4) return `${trimmed(number / 1e3)}k`;
  if (size >= 100) return grouped.format(Math.round(number));
  if (size >= 0.01) return trimmed(number);
  return number.toExponential(0);
}

const trimmed = (number) => String(Number(number.toPrecision(3)));

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (Math.abs(number) >= 1024 && at < units.length - 1) {
    number /= 1024;
    at += 1;
  }
  return `${at === 0 ? grouped.format(Math.round(number)) : trimmed(number)} ${units[at]}`;
}

export function duration(ms) {
  if (ms < 1) return ms > 0 ? `${trimmed(ms)} ms` : "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${pad(seconds % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${pad((seconds % 3600) / 60)}m`;
  return `${Number((seconds / 86400).toFixed(1))} d`;
}

const pad = (number) => String(Math.floor(number)).padStart(2, "0");

export function time(ms) {
  return clock.format(ms);
}

export function timeSeconds(ms) {
  return clockSeconds.format(ms);
}

// The time of today; on other days the date, too.
export function moment(ms) {
  const day = date.format(ms);
  return day === date.format(Date.now()) ? clockSeconds.format(ms) : `${day} ${clockSeconds.format(ms)}`;
}

export function ago(ms) {
  const passed = Date.now() - ms;
  return passed < 0 ? `in ${duration(-passed)}` : `${duration(passed)} ago`;
}

export function isForever(ms) {
  return ms > NEVER_MS / 2;
}

export function paused(untilMs) {
  return isForever(untilMs) ? "paused" : `paused until ${moment(untilMs)}`;
}

export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
