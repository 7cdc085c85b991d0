import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { withoutBytes } from "../../src/columns/column-part.ts";
import type { DiagnoseOptions, RunFacts, TrainerRow } from "../../src/doctor/index.ts";
import { ColumnWriter } from "../../src/run/columns/column-writer.ts";
import { columnsFolder } from "../../src/run/columns/column-index.ts";
import { diskFiles } from "../../src/run/disk/files.ts";
import { testManifest } from "../../src/run/folder/run-folder.fixture.ts";
import type { Sample } from "../../src/trajectory/sample.ts";

/** Writes rows as the finished folder of a run, with their columns. */
export async function writePairRun(
  dir: string,
  rows: readonly Sample[],
  { facts = {}, routes }: Pick<DiagnoseOptions, "facts" | "routes">,
): Promise<void> {
  await mkdir(dir, { recursive: true });
  const found = { ...testManifest.found, ...foundOf(facts), columns: columnsOf(facts, routes) };
  await writeFile(path.join(dir, "run.json"), JSON.stringify({ ...testManifest, found }));
  const options = { files: diskFiles, name: "start-0" };
  await using writer = await ColumnWriter.open(path.join(dir, columnsFolder), options);
  const lines: string[] = [];
  for (const row of rows) {
    const parts = row.columns?.routedExperts ?? [];
    await writer.keepParts(parts);
    const columns = { columns: { routedExperts: parts.map((part) => withoutBytes(part)) } };
    lines.push(JSON.stringify({ ...row, ...(parts.length > 0 && columns) }));
  }
  await writer.flush();
  const episodes = lines.map((line, index) => {
    const hash = createHash("sha256").update(line).digest("hex");
    const { rolloutId, taskId } = rows[index]!;
    const story = { messages: [], turns: [] };
    return JSON.stringify({ rolloutId, taskId, ...story, sampleHashes: [hash] });
  });
  await writeLines(path.join(dir, "samples.jsonl"), lines);
  await writeLines(path.join(dir, "episodes.jsonl"), episodes);
}

function foundOf({ temperature, hasTruncation, logprobConvention }: RunFacts) {
  const sampling = {
    ...(temperature !== undefined && { temperature }),
    ...(hasTruncation === true && { topK: 4 }),
  };
  return { sampling, ...(logprobConvention !== undefined && { logprobConvention }) };
}

function columnsOf({ hasKeptTokens }: RunFacts, routes: DiagnoseOptions["routes"]) {
  return {
    ...(routes !== undefined && { routedExperts: routes.shape }),
    ...(hasKeptTokens === true && { keptTokens: { maxCount: 4 } }),
  };
}

async function writeLines(file: string, lines: readonly string[]): Promise<void> {
  await writeFile(file, lines.map((line) => `${line}\n`).join(""));
}

/** Returns the line that a trainer posts for a row of a batch. */
export function postLine(
  batch: string,
  { rolloutId, segment, logprobs, policyVersion, routedExperts }: TrainerRow,
): string {
  const values = Array.from(logprobs, (value) => (Number.isNaN(value) ? null : value));
  const row = { batch, rolloutId, segment, logprobs: values };
  const version = policyVersion === undefined ? {} : { policyVersion };
  if (routedExperts === undefined) return JSON.stringify({ ...row, ...version });
  if (typeof routedExperts === "function") throw new Error("expected the routes themselves");
  const { rows, layerCount, perToken, ids } = routedExperts;
  const base64 = Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString("base64");
  if (!(ids instanceof Uint8Array)) throw new Error("expected routes of bytes");
  const routes = { shape: [rows, layerCount, perToken], dtype: "uint8", base64 };
  return JSON.stringify({ ...row, ...version, routedExperts: routes });
}
