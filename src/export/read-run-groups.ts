import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { diskFiles } from "../run/disk/files.ts";
import { samplingFactsIn } from "../run/policy/found-sampling.ts";
import type { PlanRecord } from "../run/schedule/plan-run.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { readEpisodeEvents } from "../run/folder/episode-events.ts";
import { readSlimeGroups } from "../run/slime/slime-file.ts";
import type { ExportMember, ExportSurroundings } from "./exporter.ts";
import { findAttempts, type OpenPlan } from "./find-attempts.ts";

/**
 * A run's groups, and what is known of them all. They are in the order of its plan or, where that leaves
 * them open, in the order in which they were begun.
 */
interface RunGroups {
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
 * @param known - What whoever asks knows of the run: it goes before what its folder says.
 * @throws UsageError where it is no run's folder, or does not say which episodes it will have, nor that this is open.
 */
export async function readRunGroups(
  dir: string,
  known: ExportSurroundings = {},
): Promise<RunGroups> {
  const { plan, temperature } = await readFound(path.join(dir, "run.json"));
  const episodesFile = path.join(dir, "episodes.jsonl");
  const samplesFile = path.join(dir, "samples.jsonl");
  return {
    surroundings: {
      ...(temperature !== undefined && { temperature }),
      ...withoutUndefined({ ...known }),
    },
    async *groups(wanted) {
      const { grouping } = await readEpisodeEvents(diskFiles, dir);
      const { attempts, size } = await findAttempts(plan, grouping, episodesFile);
      const choice = wanted === "all" || size === undefined ? {} : { size };
      yield* readSlimeGroups(attempts, { episodesFile, samplesFile, ...choice });
    },
  };
}

async function readFound(
  file: string,
): Promise<{ readonly plan: PlanRecord | OpenPlan; readonly temperature: number | undefined }> {
  let manifest: Partial<RunManifest>;
  try {
    manifest = JSON.parse(await readFile(file, "utf8")) as Partial<RunManifest>;
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (isAbsent)
      throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder`);
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`, { cause: error });
  }
  const { plan } = (manifest.found ?? {}) as { plan?: Partial<PlanRecord & OpenPlan> };
  const isPlanned = Array.isArray(plan?.taskIndexes) && typeof plan.sampleCount === "number";
  if (plan?.isOpen !== true && !isPlanned) {
    throw new UsageError(
      `Cannot export ${path.dirname(file)}: run.json does not say which episodes there will be`,
    );
  }
  const { sampling } = samplingFactsIn(manifest.found);
  // An engine that is given none samples at 1.
  const temperature = sampling && (sampling.temperature ?? 1);
  return { plan: plan as PlanRecord | OpenPlan, temperature };
}
