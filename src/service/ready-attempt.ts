import type { Exporter, ExportKind, ExportNote, ReadyAttempt } from "../export/exporter.ts";
import { prepareGroup } from "../export/prepare-group.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import type { PlayedAttempt } from "./batch-taker.ts";

/** An attempt in a trainer's form, or the reason why the trainer cannot use it. */
type Readiness =
  | {
      readonly type: "ready";
      readonly attempt: ReadyAttempt;
      /** Rows that were left out and tokens that were cut. */
      readonly notes: readonly ExportNote[];
    }
  | { readonly type: "unfit"; readonly why: string };

/**
 * Applies a trainer's rules to one attempt. Has no side effects.
 *
 * @throws UsageError if the rules refuse it.
 */
export function readyAttempt(
  played: PlayedAttempt,
  exporter: Pick<Exporter, "rules" | "chooseRow">,
): Readiness {
  if (played.type === "given-up") {
    return { type: "unfit", why: `${played.assignment.rolloutId} was cancelled before its end` };
  }
  const { episode } = played;
  const { rolloutId, failure } = episode;
  const place = { groupIndex: 0, index: 0 };
  const member = { rolloutId, episode, samples: episodeSamples(episode), place };
  const { attempts, notes } = prepareGroup([member], exporter);
  const [attempt] = attempts;
  if (attempt !== undefined) return { type: "ready", attempt, notes };
  if (failure !== undefined) {
    return { type: "unfit", why: `${rolloutId} failed: ${failure.code}: ${failure.message}` };
  }
  const kind: ExportKind =
    notes.find(({ action }) => action.startsWith("leave-out"))?.kind ?? "aborted";
  return { type: "unfit", why: `${rolloutId} is ${kind}: ${exporter.rules[kind].why}` };
}
