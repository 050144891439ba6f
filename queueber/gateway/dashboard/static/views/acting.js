// Asks before it acts, says what happened, and remembers what the server refused.

import { wasRefused } from "../app/rights.js";
import { ask, toast } from "../parts/dialog.js";

// `run` gets the values of the dialog's fields; `done` its answer, and says what happened.
// Resolves to whether it was done.
export async function act({ name, kind, right, run, done, refused, ...question }) {
  const given = await ask(question);
  if (given === null) return false;
  try {
    const answer = await run(given);
    toast(done(answer, given));
    return true;
  } catch (error) {
    if (error.isForbidden) {
      wasRefused(right, kind, name);
      refused?.();
    }
    if (error.status !== 401) toast(error.message, { isBad: true });
    return false;
  }
}
