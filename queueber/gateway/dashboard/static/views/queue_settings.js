// The settings of a queue as fields of a dialog.

const NUMBERS = [
  ["lease_ms", "Lease, seconds", 1000],
  ["attempts_max", "Attempts, 0: no limit", 1],
  ["items_max", "Most items, 0: no limit", 1],
  ["bytes_max", "Most bytes, 0: no limit", 1],
  ["item_bytes_max", "Most bytes of an item, 0: the server's", 1],
  ["backoff_base_ms", "First retry after, seconds", 1000],
  ["backoff_factor", "Then times", 1],
  ["backoff_cap_ms", "At most, seconds", 1000],
  ["backoff_jitter", "Shortened by up to, 0 to 1", 1],
  ["dedup_window_ms", "Keys are remembered, seconds", 1000],
  ["result_age_ms", "Results are kept, seconds", 1000],
  ["result_bytes_max", "Bytes of results, 0: no limit", 1],
  ["concurrency_max", "Leased at once, 0: no limit", 1],
  ["rate_items", "Rate, items, 0: no limit", 1],
  ["rate_ms", "Rate, in seconds, 0: one", 1000],
  ["batches_max", "Most batches, 0: no limit", 1],
  ["batch_keep_ms", "Complete batches are kept, seconds", 1000],
  ["cap_by_concurrency_max", "Leased at once of each, 0: no limit", 1],
  ["cap_by_rate_items", "Rate of each, items, 0: no limit", 1],
  ["cap_by_rate_ms", "Rate of each, in seconds, 0: one", 1000],
  ["dead_age_ms", "Dead letters are kept, seconds, 0: for good", 1000],
];

export function settingsFields(settings) {
  return [
    ...NUMBERS.map(([name, label, unit]) => ({ name, label, type: "number", min: 0, step: "any", required: true, value: settings[name] / unit })),
    {
      name: "backoff_ms",
      label: "Retries after, seconds",
      value: settings.backoff_ms.map((ms) => ms / 1000).join(", "),
      hint: "A list such as 1, 10, 60 replaces the formula.",
    },
    { name: "cap_by", label: "Capped by the attribute", value: settings.cap_by },
    { name: "isolation", label: "Try items of a lost lease apart", type: "checkbox", value: settings.isolation },
  ];
}

export function settingsOf(given) {
  const units = Object.fromEntries(NUMBERS.map(([name, , unit]) => [name, unit]));
  const settings = {};
  for (const [name, value] of Object.entries(given)) {
    settings[name] = name.endsWith("_ms") && units[name] ? Math.round(value * units[name]) : value;
  }
  settings.backoff_ms = given.backoff_ms.split(",").map((text) => text.trim()).filter(Boolean).map((text) => Math.round(Number(text) * 1000));
  return settings;
}
