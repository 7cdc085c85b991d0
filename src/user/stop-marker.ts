import type { UserLine } from "./user.ts";

/**
 * What a model that plays a user is told to write when nothing is left to say, in exactly this
 * spelling. Who is not a model leaves by a `LeavingLine`; only τ-bench reads the marker in
 * everybody's words, as the original does. **Source:** sierra-research/tau-bench,
 * tau_bench/envs/base.py.
 */
export const STOP_MARKER = "###STOP###";

/** A line of a speaker who leaves by writing the marker, somewhere in it. */
export function readStopMarker(text: string): UserLine {
  return text.includes(STOP_MARKER) ? { text, leaves: true } : text;
}
