import { readFileSync } from "node:fs";
import path from "node:path";
import type { Inputs } from "../../src/episode/inputs/input.ts";
import { hashColumnBytes } from "../../src/columns/column-part.ts";
import { openColumnFolder } from "../../src/run/columns/column-folder.ts";
import { inventedFaults } from "../../src/run/columns/invented-faults.fixture.ts";
import { recordedParts } from "../../src/run/columns/named-parts.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { verifyRun } from "../../src/verify/verify-run.ts";
import { killedSpecs, sampleCount, taskCount } from "./invented-setup.ts";

/** The result of checking a finished run. */
interface KilledCheck {
  readonly faults: readonly string[];
  readonly rows: number;
  readonly parts: number;
  /** Rows with tokens of several versions of the weights. */
  readonly mixedRows: number;
  readonly recordedParts: number;
}

/** Checks the columns of a finished run: of its rows, and of its recording. */
export async function checkKilled(dir: string): Promise<KilledCheck> {
  await using source = openColumnFolder(dir);
  const faults: string[] = [];
  const rows = linesOf(dir, "samples.jsonl").map((line) => JSON.parse(line) as Sample);
  const attempts = new Set(rows.map(({ rolloutId }) => rolloutId));
  if (attempts.size !== taskCount * sampleCount) faults.push(`${attempts.size} attempts have rows`);
  const parts = new Set<string>();
  let mixedRows = 0;
  for (const row of rows) {
    const found = await inventedFaults(row, { source, specs: killedSpecs }).catch(
      (error: Error) => [error.message],
    );
    faults.push(...found.map((fault) => `${row.rolloutId}: ${fault}`));
    const own = Object.values(row.columns ?? {}).flat();
    for (const { hash } of own) parts.add(hash);
    const versions = new Set(row.policyVersions.filter((version) => version !== ""));
    if (versions.size > 1) mixedRows += 1;
  }
  let recordedCount = 0;
  for (const line of linesOf(dir, "recording.jsonl")) {
    const read = JSON.parse(line) as { readonly type: string; readonly rolloutId: string } & Inputs;
    if (read.type !== "inputs") continue;
    // The ids and logprobs are written as base64, which does not matter here.
    for (const { part } of recordedParts(read)) {
      recordedCount += 1;
      const hash = await source.read(part).then(hashColumnBytes, (error: Error) => error.message);
      if (hash !== part.hash) faults.push(`recorded part of ${read.rolloutId}: ${hash}`);
    }
  }
  const { violations } = await verifyRun(dir);
  faults.push(...violations.map((violation) => `verify: ${JSON.stringify(violation)}`));
  return { faults, rows: rows.length, parts: parts.size, mixedRows, recordedParts: recordedCount };
}

/** Complete lines of a file. */
function linesOf(dir: string, name: string): readonly string[] {
  return readFileSync(path.join(dir, name), "utf8").split("\n").slice(0, -1);
}
