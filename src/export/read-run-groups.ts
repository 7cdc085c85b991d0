import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { specsIn, type ColumnSpecs } from "../columns/column-specs.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { samplingFactsIn } from "../run/policy/found-sampling.ts";
import type { PlanRecord } from "../run/schedule/plan-run.ts";
import { requireRunRows } from "../run/require-rows.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { readEpisodeEvents } from "../run/folder/episode-events.ts";
import { readSlimeGroups } from "../run/slime/slime-file.ts";
import type { ExportMember, ExportSurroundings } from "./exporter.ts";
import { findAttempts, type OpenPlan } from "./find-attempts.ts";

/**
 * A run's groups, with the facts that hold for all of them. Groups have the order of the plan, or
 * the order in which they started if the run has no fixed plan.
 */
interface RunGroups {
  readonly surroundings: ExportSurroundings;
  /** The run's side columns. Empty if it has none. */
  readonly columns: ColumnSpecs;
  /**
   * Requires that the run has rows.
   *
   * @throws UsageError if the engine returned messages, so that the run has no rows.
   */
  requireRows(): void;
  /**
   * Yields the groups. Keeps one group at a time in memory and reads the files again on each call.
   * If a group started more attempts than it needs, yields those that the trainer received, or all
   * of them with `wanted: "all"`.
   */
  groups(wanted?: "all"): AsyncGenerator<readonly ExportMember[]>;
}

/**
 * Opens a run's folder for an export. If the run is unfinished, the groups have only finished episodes.
 * @param known - Facts that the caller knows. They override those of the folder.
 * @throws UsageError if `dir` is not a run's folder, or if `run.json` has no plan. Reading the groups throws the same
 *   error if rows of a finished episode are damaged or missing.
 */
export async function readRunGroups(
  dir: string,
  known: ExportSurroundings = {},
): Promise<RunGroups> {
  const { found, plan, temperature, columns } = await readFound(path.join(dir, "run.json"));
  const episodesFile = path.join(dir, "episodes.jsonl");
  const samplesFile = path.join(dir, "samples.jsonl");
  return {
    columns,
    requireRows: () => requireRunRows(found, `export ${dir}`),
    surroundings: {
      ...(temperature !== undefined && { temperature }),
      ...withoutUndefined({ ...known }),
    },
    async *groups(wanted) {
      const { grouping } = await readEpisodeEvents(storedFiles, dir);
      const { attempts, size } = await findAttempts(plan, grouping, episodesFile);
      const choice = wanted === "all" || size === undefined ? {} : { size };
      const read = readSlimeGroups(attempts, { episodesFile, samplesFile, ...choice });
      for await (const members of read) {
        for (const member of members) requireNamedRows(member, samplesFile);
        yield members;
      }
    },
  };
}

/**
 * Compares the rows of a finished episode with those that it names.
 *
 * @throws UsageError if a finished episode lacks rows, or has more than it names: a line is damaged.
 */
function requireNamedRows(
  {
    rolloutId,
    episode,
    samples,
  }: {
    readonly rolloutId: string;
    readonly episode: Partial<Pick<EpisodeRow, "sampleHashes">> | undefined;
    readonly samples: readonly unknown[];
  },
  samplesFile: string,
): void {
  const namedCount = episode?.sampleHashes?.length ?? samples.length;
  if (samples.length === namedCount) return;
  throw new UsageError(
    `Cannot read ${samplesFile}: it has ${samples.length} of the ${namedCount} rows of ${rolloutId}; turnwright ` +
      "verify says which line is damaged, and the command that played the run writes its rows again",
  );
}

/** The facts in `run.json` that an export needs. */
interface FoundFacts {
  readonly found: unknown;
  readonly plan: PlanRecord | OpenPlan;
  readonly temperature: number | undefined;
  readonly columns: ColumnSpecs;
}

async function readFound(file: string): Promise<FoundFacts> {
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
  // Engines sample at temperature 1 by default.
  const temperature = sampling && (sampling.temperature ?? 1);
  const columns = specsIn(manifest.found);
  return { found: manifest.found, plan: plan as PlanRecord | OpenPlan, temperature, columns };
}
