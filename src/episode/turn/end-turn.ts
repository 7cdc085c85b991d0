import type { Intent, Reading } from "../../agent/agent.ts";
import { tolerate, type Play, type TurnsEnd } from "../play.ts";
import { observe } from "./add-observations.ts";
import type { Performed } from "./perform-intents.ts";
import type { SampledTurn } from "./sample-turn.ts";

/** Returns the reason why a turn that was cut short ends the episode; `undefined` if the episode continues. */
export function cutOffBy(
  { cutBy, finish }: { readonly cutBy?: SampledTurn["cutBy"]; readonly finish: "stop" | "length" },
  onLength: "end" | "close-and-continue",
): TurnsEnd | undefined {
  if (cutBy === "interrupt") return { outcome: "aborted", stopReason: "interrupted" };
  if (cutBy === "deadline") return { outcome: "truncated", stopReason: "deadline" };
  if (finish !== "length" || onLength !== "end") return undefined;
  return { outcome: "truncated", stopReason: "length" };
}

/** True if the episode ends after the performed intents. */
export function isLast({ failure, done, isLate }: Performed): boolean {
  return failure !== undefined || done !== undefined || isLate === true;
}

/**
 * Adds the last turn and its observations to the episode's messages. No prompt contains them.
 *
 * @throws RolloutError if the turn failed.
 */
export async function endWith(
  play: Play,
  reading: Reading,
  { observed, failure, done }: Performed,
): Promise<TurnsEnd> {
  await tolerate(play, async () => {
    play.messages.push(reading.message);
    if (observed.length > 0) play.messages.push(...(await observe(play, observed)));
  });
  if (failure !== undefined) throw failure;
  return done === undefined
    ? { outcome: "truncated", stopReason: "deadline" }
    : { outcome: "completed", stopReason: done };
}

/** Counts a turn with malformed calls only. Ends the episode when there are too many. */
export function endByFormatErrors(play: Play, intents: readonly Intent[]): TurnsEnd | undefined {
  if (!isFormatError(intents)) return undefined;
  play.formatErrorCount += 1;
  if (play.formatErrorCount < play.setup.limits.maxFormatErrors) return undefined;
  return { outcome: "truncated", stopReason: "format-errors" };
}

/** True if the turn tried to call tools and no call was correct. */
function isFormatError(intents: readonly Intent[]): boolean {
  return intents.every(
    (intent) =>
      intent.type === "ignore" || (intent.type === "refuse" && intent.status !== "extra-call"),
  );
}
