import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Environment } from "../../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../../episode/lamp-episode.fixture.ts";
import { withInventedColumns } from "../../testing/column-engine.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import { lampPlan, lamps, lampSetup } from "../lamp-run.fixture.ts";
import { runRollouts, type RunOptions, type RunResult } from "../run-rollouts.ts";
import { openColumnFolder } from "./column-folder.ts";
import { inventedFaults } from "./invented-faults.fixture.ts";

/** Columns that `withInventedColumns()` returns. */
export const inventedSpecs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 },
  keptTokens: { maxCount: 4 },
  topLogprobs: { count: 2 },
} satisfies ColumnSpecs;

/** Reads the rows of a run's folder. */
export async function readRows(dir: string): Promise<readonly Sample[]> {
  const text = await readFile(path.join(dir, "samples.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
}

/** Reads each row's columns from a run's folder, and compares them with the invented ones. Returns the number of parts. */
export async function checkInvented(dir: string, rows: readonly Sample[]): Promise<number> {
  await using source = openColumnFolder(dir);
  let partCount = 0;
  for (const row of rows) partCount += await checkInventedRow(row, source);
  return partCount;
}

/** Compares the columns of a row with the invented ones. Returns the number of parts. */
export async function checkInventedRow(row: Sample, source: ColumnSource): Promise<number> {
  expect(await inventedFaults(row, { source, specs: inventedSpecs })).toEqual([]);
  return Object.values(row.columns!).flat().length;
}

/** Two lamps with episodes that can be branched. */
export const inventedLamps: Environment = { ...lamps(2), repeatable: true };

/**
 * Creates an engine with invented columns. It switches the lamp on in the first turn, and says goodbye in the second.
 *
 * @param options.onRequest - Called with the id of each request.
 * @param options.goodbye - Returns the second turn of a session. Default: "Goodbye!".
 */
export function inventedLampEngine({
  onRequest = () => {},
  goodbye = () => "Goodbye!",
}: {
  readonly onRequest?: (requestId: string) => void;
  readonly goodbye?: (sessionId: string) => string;
} = {}): Engine {
  return withInventedColumns({
    ...preparedEngine([]),
    generate: async (request, options) => {
      const { requestId, sessionId } = request;
      onRequest(requestId);
      const reply = says(requestId.endsWith(":0;") ? switchCall : goodbye(sessionId));
      return await preparedEngine([reply]).generate(request, options);
    },
  });
}

/** Plays two attempts at each of two lamps, with side columns. */
export async function playInventedLamps(
  folder: RunFolder,
  {
    engine = inventedLampEngine(),
    columns = inventedSpecs,
    ...options
  }: Partial<RunOptions> & { readonly engine?: Engine; readonly columns?: ColumnSpecs } = {},
): Promise<RunResult> {
  return await runRollouts({
    plan: lampPlan(inventedLamps),
    setup: { ...lampSetup({ environment: inventedLamps, engine }), columns },
    folder,
    concurrency: 2,
    attempts: 1,
    maxFailuresInRow: 10,
    signal: new AbortController().signal,
    ...options,
  });
}
