import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { diskFiles } from "../run/files.ts";
import type { PlanRecord } from "../run/plan-run.ts";
import type { RunManifest } from "../run/run-manifest.ts";
import { readTold } from "../run/told-episodes.ts";
import { readSlimeGroups } from "../sink/slime-file.ts";
import type { ExportMember, ExportSurroundings } from "./exporter.ts";
import { findAttempts, type OpenPlan } from "./find-attempts.ts";

/**
 * A run's groups, and what its manifest says of them all. They are in the order of its plan or, where that leaves
 * them open, in the order in which they were begun.
 */
export interface RunGroups {
  readonly surroundings: ExportSurroundings;
  /**
   * One group at a time is in memory; reads the files anew on each call. Where more attempts were begun than a
   * group needs, it has those with which it was handed out, or all of them where these are `wanted`.
   */
  groups(wanted?: "all"): AsyncGenerator<readonly ExportMember[]>;
}

/**
 * Opens a run's folder for exporting. The run may go on meanwhile: what is finished is there.
 *
 * @throws UsageError where it is no run's folder, or does not say which episodes it will have, nor that this is open.
 */
export async function readRunGroups(dir: string): Promise<RunGroups> {
  const { plan, settings } = await readFound(path.join(dir, "run.json"));
  const episodesFile = path.join(dir, "episodes.jsonl");
  const samplesFile = path.join(dir, "samples.jsonl");
  const temperature = settings?.["temperature"];
  return {
    surroundings: typeof temperature === "number" ? { temperature } : {},
    async *groups(wanted) {
      const { grouping } = await readTold(diskFiles, dir);
      const { attempts, size } = await findAttempts(plan, grouping, episodesFile);
      const choice = wanted === "all" || size === undefined ? {} : { size };
      yield* readSlimeGroups(attempts, { episodesFile, samplesFile, ...choice });
    },
  };
}

async function readFound(
  file: string,
): Promise<{ plan: PlanRecord | OpenPlan; settings?: Readonly<Record<string, unknown>> }> {
  let manifest: Partial<RunManifest>;
  try {
    manifest = JSON.parse(await readFile(file, "utf8")) as Partial<RunManifest>;
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (isAbsent)
      throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder`);
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`, { cause: error });
  }
  const found = (manifest.found ?? {}) as {
    plan?: Partial<PlanRecord & OpenPlan>;
    settings?: Readonly<Record<string, unknown>>;
  };
  const { plan, settings } = found;
  const isPlanned = Array.isArray(plan?.taskIndexes) && typeof plan.sampleCount === "number";
  if (plan?.isOpen !== true && !isPlanned) {
    throw new UsageError(
      `Cannot export ${path.dirname(file)}: run.json does not say which episodes there will be`,
    );
  }
  return { plan: plan as PlanRecord | OpenPlan, ...(settings && { settings }) };
}
