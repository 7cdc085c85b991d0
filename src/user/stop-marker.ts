import type { UserLine } from "./user.ts";
import { isRepaired, type UserRepairChoice } from "./user-repairs.ts";

/**
 * The text that a model that plays a user writes when nothing is left to say. Users that are no
 * models leave by a `LeavingLine`; only τ-bench reads the marker in the words of all users, as the
 * original does. **Source:** sierra-research/tau-bench, tau_bench/envs/base.py.
 */
export const STOP_MARKER = "###STOP###";

/**
 * The marker as small models write it: in other letters, with spaces, with fewer signs, escaped as in
 * Markdown, or cut where it is all that is said.
 */
const nearMarker = /(?:\\?#){2}[ \t]*stop[ \t]*(?:\\?#){2}|^[^\w#]*(?:\\?#){2,}[ \t]*stop\W*$/i;

/** Returns whether a text holds the stop marker: in exactly its spelling, unless `stop-spelling` is repaired. */
export function hasStopMarker(text: string, repair: UserRepairChoice): boolean {
  return isRepaired(repair, "stop-spelling") ? nearMarker.test(text) : text.includes(STOP_MARKER);
}

/** A line of a speaker who leaves by writing the marker, somewhere in it. */
export function readStopMarker(text: string, repair: UserRepairChoice): UserLine {
  return hasStopMarker(text, repair) ? { text, leaves: true } : text;
}
