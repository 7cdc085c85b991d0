import { isObject } from "../values/is-object.ts";
import path from "node:path";
import { specsIn } from "../columns/column-specs.ts";
import { readText, type Files } from "../run/disk/files.ts";
import { isGreedy, samplingFactsIn } from "../run/policy/found-sampling.ts";
import { hasNoRows } from "../run/require-rows.ts";
import type { PlanRecord } from "../run/schedule/plan-run.ts";
import type { SampleFacts } from "../trajectory/check-tokens.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import type { EpochsFacts } from "./check-epochs.ts";
import { isCount, type RawRow, type Violation } from "../trajectory/violation.ts";

/** The facts in `run.json` that the other files are checked against. */
export interface RunFacts {
  readonly sampleFacts: SampleFacts;
  readonly plan: PlanRecord | undefined;
  /** Present if the run plays its tasks in several epochs. */
  readonly epochs?: EpochsFacts;
  /** True if the run writes slime rows. */
  readonly hasSlime: boolean;
  /** True if the engine returned messages, so that episodes have no rows. */
  readonly hasNoRows: boolean;
}

/** Reads `run.json`. Reports missing members and returns the rest. */
export async function readRunFacts(
  files: Files,
  dir: string,
): Promise<{ facts: RunFacts; manifest: RawRow; found: Violation[] }> {
  const text = await readText(files, path.join(dir, "run.json")).catch(() => undefined);
  const value = text === undefined ? undefined : parseLine(text);
  const manifest = isObject(value) ? value : {};
  const { format, configuration, found: started } = manifest;
  const found: Violation[] = [];
  if (format !== 1 || !isObject(configuration) || !isObject(started)) {
    const detail = "no readable configuration of a run of format 1";
    return {
      facts: { sampleFacts: {}, plan: undefined, hasSlime: false, hasNoRows: false },
      manifest: {},
      found: [{ rule: "run", detail }],
    };
  }
  const { plan, vocabularySize, engine } = started;
  // A gateway's number of sessions is not known in advance.
  const isOpen = isObject(plan) && plan["isOpen"] === true;
  if (!isPlan(plan) && !isOpen) {
    found.push({ rule: "run", detail: "found.plan does not say which episodes there will be" });
  }
  const isWithoutRows = hasNoRows(started);
  if (!isCount(vocabularySize) && !isWithoutRows) {
    const detail = "found.vocabularySize does not say how many ids there are";
    found.push({ rule: "run", detail });
  }
  const { policyVersion } = isObject(engine) ? engine : {};
  const { sampling = {}, logprobConvention } = samplingFactsIn(started);
  const facts = {
    sampleFacts: {
      ...(isCount(vocabularySize) && { vocabularySize }),
      namesVersions: typeof policyVersion === "string" && policyVersion !== "",
      // Rows of a run without columns have none.
      columns: specsIn(started),
      mayBeCertain: logprobConvention === "processed" && isGreedy(sampling),
    },
    plan: isPlan(plan) ? plan : undefined,
    ...(isEpochs(plan) && { epochs: plan }),
    hasSlime: configuration["format"] === "slime",
    hasNoRows: isWithoutRows,
  };
  return { facts, manifest, found };
}

function isEpochs(value: unknown): value is RawRow & EpochsFacts {
  if (!isObject(value) || value["isOpen"] !== true) return false;
  const { passOver, ...rest } = value;
  return Array.isArray(passOver) && isPlan({ ...rest, taskIndexes: passOver });
}

function isPlan(value: unknown): value is RawRow & PlanRecord {
  if (!isObject(value)) return false;
  const { environment, split, taskIndexes, sampleCount, seed, groupId } = value;
  return (
    (groupId === undefined || typeof groupId === "string") &&
    typeof environment === "string" &&
    typeof split === "string" &&
    Array.isArray(taskIndexes) &&
    taskIndexes.every(isCount) &&
    isCount(sampleCount) &&
    Number.isInteger(seed)
  );
}
