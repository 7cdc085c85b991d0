import { isCount, nameOf, quote, type RawRow } from "../trajectory/violation.ts";
import type { PlannedAttempt } from "./check-plan.ts";
import { EpisodeFile, type EpisodeFacts } from "./episode-file.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** The facts in `run.json` about a run that plays its tasks in several epochs. */
export interface EpochsFacts {
  readonly environment: string;
  readonly split: string;
  readonly seed: number;
  /** The number of attempts per group. */
  readonly sampleCount: number;
  /** The task indexes of each epoch, 0-based. */
  readonly passOver: readonly number[];
}

/**
 * Checks a run's episodes against its epochs. An episode's seed gives its place in the run, and the
 * place gives the epoch in its group's name. No place may occur twice, and each episode's task must
 * be one of the run's tasks.
 * @returns the attempts by their places. Their final number is unknown.
 */
export function checkEpochs(
  epochs: EpochsFacts,
  started: number,
  episodes: ReadonlyMap<string, EpisodeFacts>,
): { readonly attempts: readonly PlannedAttempt[]; readonly findings: readonly Finding[] } {
  const found: { line: number; rule: string; detail: string }[] = [];
  const byPlace = new Map<number, string>();
  for (const [rolloutId, { place, fields }] of episodes) {
    const index = placeOf(epochs, fields);
    const details = compare(epochs, started, [rolloutId, fields]);
    const other = byPlace.get(index);
    if (other !== undefined) details.push(`${rolloutId} is the same attempt as ${other}`);
    else byPlace.set(index, rolloutId);
    for (const detail of details) found.push({ line: place.line, rule: "plan", detail });
  }
  const attempts = [...byPlace]
    .toSorted(([one], [other]) => one - other)
    .map(([index, rolloutId]) => ({
      rolloutId,
      index,
      label: rolloutId,
      isMissing: false,
      groupIndex: Math.floor(index / started),
    }));
  return { attempts, findings: findingsIn(EpisodeFile.fileName, found) };
}

/**
 * Returns the place of an episode in the run. A branch has the same seed as the first attempt of
 * its group, because both have the same user.
 */
function placeOf(
  { seed: first }: Pick<EpochsFacts, "seed">,
  { forkedFrom, sampleIndex, seed }: EpisodeFacts["fields"],
): number {
  if (typeof seed !== "number") return NaN;
  if (forkedFrom === undefined) return seed - first;
  return isCount(sampleIndex) ? seed - first + sampleIndex : NaN;
}

function compare(
  { environment, split, seed, passOver }: EpochsFacts,
  started: number,
  [rolloutId, fields]: readonly [string, EpisodeFacts["fields"]],
): string[] {
  const { taskId, taskIndex, sampleIndex } = fields;
  const index = placeOf({ seed }, fields);
  if (!Number.isSafeInteger(index) || index < 0) {
    return [`${rolloutId}: its seed ${quote(fields.seed)} is not one of the run's`];
  }
  if (typeof taskIndex !== "number" || !passOver.includes(taskIndex)) {
    return [`${rolloutId} is of task ${quote(taskIndex)}, which is not planned`];
  }
  const pass = Math.floor(Math.floor(index / started) / passOver.length);
  const groupId = pass === 0 ? nameOf(taskId) : `${nameOf(taskId)}~${pass + 1}`;
  const expected = { environment, split, groupId, sampleIndex: index % started };
  const actual: RawRow = { ...fields };
  const wrong = Object.entries(expected)
    .filter(([field, value]) => actual[field] !== value)
    .map(
      ([field, value]) =>
        `${rolloutId}: ${field} is ${quote(actual[field])}, expected ${quote(value)}`,
    );
  const name = `${groupId}#${nameOf(sampleIndex)}`;
  return rolloutId === name ? wrong : [...wrong, `${rolloutId} is by its fields ${name}`];
}
