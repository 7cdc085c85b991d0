import type { UserLine } from "./user.ts";
import { isRepaired, type UserRepairChoice } from "./user-repairs.ts";

/**
 * The text with which a model that plays a user leaves. Other users leave with a `LeavingLine`.
 * τ-bench environments read the marker in the text of every user, as the original does. **Source:**
 * sierra-research/tau-bench, tau_bench/envs/base.py.
 */
export const STOP_MARKER = "###STOP###";

/**
 * Matches the marker as small models write it: in other letter case, with spaces, with fewer signs,
 * escaped as in Markdown, or cut at the end of a line that has no other text.
 */
const nearMarker = /(?:\\?#){2}[ \t]*stop[ \t]*(?:\\?#){2}|^[^\w#]*(?:\\?#){2,}[ \t]*stop\W*$/i;

/**
 * True if a text contains the stop marker. Only the exact spelling counts, unless `stop-spelling`
 * is repaired.
 */
export function hasStopMarker(text: string, repair: UserRepairChoice): boolean {
  return isRepaired(repair, "stop-spelling") ? nearMarker.test(text) : text.includes(STOP_MARKER);
}

/** Converts a text to a line: a leaving line if it contains the marker. */
export function readStopMarker(text: string, repair: UserRepairChoice): UserLine {
  return hasStopMarker(text, repair) ? { text, leaves: true } : text;
}
