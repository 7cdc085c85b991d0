import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { attemptCountsOf } from "../run/attempt-counts.ts";
import { diskFiles } from "../run/files.ts";
import { readPlacedLines } from "../run/placed-lines.ts";
import type { PlanRecord } from "../run/plan-run.ts";
import type { RunManifest } from "../run/run-manifest.ts";
import { readTold } from "../run/told-episodes.ts";
import { readSlimeGroups, type SlimeAttempt } from "../sink/slime-file.ts";
import type { ExportMember, ExportSurroundings } from "./exporter.ts";

/** A run's groups in the order of its plan, and what its manifest says of them all. */
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
 * @throws UsageError where it is no run's folder, or does not say which episodes it will have.
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
      const { size, begun } = attemptCountsOf(grouping, plan);
      const attempts = await findAttempts(plan, begun, episodesFile);
      const choice = wanted === "all" ? {} : { size };
      yield* readSlimeGroups(attempts, { episodesFile, samplesFile, ...choice });
    },
  };
}

async function readFound(
  file: string,
): Promise<{ plan: PlanRecord; settings?: Readonly<Record<string, unknown>> }> {
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
    plan?: Partial<PlanRecord>;
    settings?: Readonly<Record<string, unknown>>;
  };
  const { plan, settings } = found;
  if (!Array.isArray(plan?.taskIndexes) || typeof plan.sampleCount !== "number") {
    throw new UsageError(
      `Cannot export ${path.dirname(file)}: run.json does not say which episodes there will be`,
    );
  }
  return { plan: plan as PlanRecord, ...(settings && { settings }) };
}

/** The attempts at the plan's tasks; one that is not finished has the name that it will have. */
async function findAttempts(
  { environment, split, taskIndexes, groupId }: PlanRecord,
  begun: number,
  episodesFile: string,
): Promise<readonly SlimeAttempt[]> {
  const byPlace = new Map<string, string>();
  try {
    for await (const { text, place } of readPlacedLines(diskFiles, episodesFile)) {
      const row = parseEpisode(text, `${episodesFile}, line ${place.line}`);
      byPlace.set(`${row.taskIndex}#${row.sampleIndex}`, row.rolloutId);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new UsageError(`Cannot read ${episodesFile}: no such file, expected a run's folder`);
  }
  return taskIndexes.flatMap((taskIndex, groupIndex) =>
    Array.from({ length: begun }, (_, sampleIndex) => ({
      rolloutId:
        byPlace.get(`${taskIndex}#${sampleIndex}`) ??
        `${groupId ?? `${environment}/${split}/${taskIndex}`}#${sampleIndex}`,
      groupIndex,
      index: groupIndex * begun + sampleIndex,
    })),
  );
}

interface EpisodePlace {
  readonly rolloutId: string;
  readonly taskIndex: number;
  readonly sampleIndex: number;
}

function parseEpisode(text: string, where: string): EpisodePlace {
  try {
    const row = JSON.parse(text) as Partial<EpisodePlace> | null;
    if (typeof row?.rolloutId === "string") return row as EpisodePlace;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UsageError(`Cannot read ${where}: it is no episode; turnwright verify says more`);
}
