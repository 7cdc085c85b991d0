import type { PlanRecord } from "../run/schedule/plan-run.ts";
import type { SlimeAttempt } from "../run/slime/slime-file.ts";
import type { AttemptCounts } from "../run/schedule/attempt-counts.ts";
import { isCount, nameOf, quote } from "../trajectory/violation.ts";
import { EpisodeFile, type EpisodeFacts } from "./episode-file.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** An attempt of the run's plan. */
export interface PlannedAttempt extends SlimeAttempt {
  /** A description for messages, used if the episode does not exist. */
  readonly label: string;
  /** True if the episode does not exist and its group needs it. */
  readonly isMissing: boolean;
}

/**
 * Checks a run's episodes against its plan. Each episode must be in the plan with the same names,
 * seed and place, and no place may occur twice.
 */
export function checkPlan(
  plan: PlanRecord,
  { size, started }: AttemptCounts,
  episodes: ReadonlyMap<string, EpisodeFacts>,
): { readonly attempts: readonly PlannedAttempt[]; readonly findings: readonly Finding[] } {
  const found: { line: number; rule: string; detail: string }[] = [];
  const byPlace = new Map<string, string>();
  for (const [rolloutId, facts] of episodes) {
    const { line } = facts.place;
    for (const detail of compare(plan, started, [rolloutId, facts]))
      found.push({ line, rule: "plan", detail });
    const key = keyOf(facts.fields.taskIndex, facts.fields.sampleIndex);
    const other = byPlace.get(key);
    if (other === undefined) byPlace.set(key, rolloutId);
    else {
      const detail = `${rolloutId} is the same attempt of the same task as ${other}`;
      found.push({ line, rule: "plan", detail });
    }
  }
  const attempts = plan.taskIndexes.flatMap((taskIndex, groupIndex) => {
    const ids = Array.from({ length: started }, (_, sampleIndex) =>
      byPlace.get(keyOf(taskIndex, sampleIndex)),
    );
    const scored = ids.filter(
      (id) => id !== undefined && episodes.get(id)?.fields.reward !== undefined,
    );
    const isWhole = scored.length >= size;
    return ids.map((rolloutId, sampleIndex) => ({
      rolloutId: rolloutId ?? "",
      groupIndex,
      index: groupIndex * started + sampleIndex,
      label: rolloutId ?? `attempt ${sampleIndex} of task ${taskIndex}`,
      isMissing: rolloutId === undefined && !isWhole,
    }));
  });
  return { attempts, findings: findingsIn(EpisodeFile.fileName, found) };
}

function compare(
  plan: PlanRecord,
  started: number,
  [rolloutId, { fields }]: readonly [string, EpisodeFacts],
): string[] {
  const { taskIndex, sampleIndex, taskId } = fields;
  const groupIndex = typeof taskIndex === "number" ? plan.taskIndexes.indexOf(taskIndex) : -1;
  if (groupIndex < 0) return [`${rolloutId} is of task ${quote(taskIndex)}, which is not planned`];
  if (!isCount(sampleIndex) || sampleIndex >= started) {
    return [`${rolloutId} is attempt ${quote(sampleIndex)} of ${started}`];
  }
  const groupId = plan.groupId ?? nameOf(taskId);
  const expected = {
    environment: plan.environment,
    split: plan.split,
    groupId,
    // A fork has the same seed as the original attempt, because both have the same user.
    ...(fields.forkedFrom === undefined && {
      seed: plan.seed + groupIndex * started + sampleIndex,
    }),
  };
  const wrong = Object.entries(expected)
    .filter(([field, value]) => fields[field as keyof typeof expected] !== value)
    .map(([field, value]) => {
      const actual = quote(fields[field as keyof typeof expected]);
      return `${rolloutId}: ${field} is ${actual}, expected ${quote(value)}`;
    });
  const name = `${groupId}#${sampleIndex}`;
  if (rolloutId !== name) wrong.push(`${rolloutId} is by its fields ${name}`);
  return wrong;
}

function keyOf(taskIndex: unknown, sampleIndex: unknown): string {
  return `${quote(taskIndex)}#${quote(sampleIndex)}`;
}
