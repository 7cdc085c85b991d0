import path from "node:path";
import type { ColumnPart } from "../columns/column-part.ts";
import { expertBytes, type ColumnSpecs, type ExpertShape } from "../columns/column-specs.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import { checkGeneration } from "../engine/check-sampled.ts";
import type { Engine, GenerateRequest } from "../engine/engine.ts";
import { forEachLimited } from "../async/for-each-limited.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import type { Sample } from "../trajectory/sample.ts";

/** The result of requesting the routes of a run's rows again. JSON-able. */
export interface RouteRescoring {
  readonly rowCount: number;
  /** Number of tokens with routes. */
  readonly tokenCount: number;
  /** Share of the experts of a token and a layer that are the same in the same order, 0 to 1. Absent without routes. */
  readonly equalShare?: number;
  /** Share of those that are the same in any order. */
  readonly sameSetShare?: number;
  /** The row with the lowest share. */
  readonly lowest?: {
    readonly rolloutId: string;
    readonly segment: number;
    readonly equalShare: number;
  };
  /** The policy versions that computed the recorded routes. Other weights give other routes. */
  readonly policyVersions: readonly string[];
}

/** Options of `rescoreRoutes()`. */
export interface RouteRescoreOptions {
  readonly engine: Engine;
  readonly specs: ColumnSpecs & { readonly routedExperts: ExpertShape };
  /** Number of rows that are requested at the same time. Default 8. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
}

/**
 * Requests the routes of each row of a run again, with the row's ids as the prompt, and compares them with the recorded
 * ones. Keeps the routes of `concurrency` rows in memory.
 *
 * @param dir - The run's folder.
 * @throws UsageError if a file cannot be read.
 * @throws RolloutError as `Engine.generate()` does.
 */
export async function rescoreRoutes(
  dir: string,
  { engine, specs, concurrency = 8, signal }: RouteRescoreOptions,
): Promise<RouteRescoring> {
  await using source = openColumnFolder(dir);
  const versions = new Set<string>();
  let rowCount = 0;
  let [tokenCount, equalCount, sameCount] = [0, 0, 0];
  let lowest: RouteRescoring["lowest"];
  const { layerCount } = specs.routedExperts;
  const compare = async (row: Sample, stop: AbortSignal): Promise<void> => {
    const parts = row.columns?.routedExperts ?? [];
    const known = parts.reduce((sum, { rows }) => sum + rows, 0);
    for (const { policyVersion } of parts) versions.add(policyVersion);
    const again = await requestRoutes(row.tokenIds.slice(0, known), { engine, specs, stop });
    const found = countEqual(await readAll(source, parts), again, specs.routedExperts);
    const equalShare = known === 0 ? 1 : found.equal / (known * layerCount);
    rowCount += 1;
    tokenCount += known;
    equalCount += found.equal;
    sameCount += found.same;
    if (lowest !== undefined && lowest.equalShare <= equalShare) return;
    lowest = { rolloutId: row.rolloutId, segment: row.segment, equalShare };
  };
  await forEachLimited(readRows(dir), concurrency, { work: compare, ...(signal && { signal }) });
  const compared = tokenCount * layerCount;
  return {
    rowCount,
    tokenCount,
    ...(compared > 0 && {
      equalShare: equalCount / compared,
      sameSetShare: sameCount / compared,
    }),
    ...(lowest !== undefined && { lowest }),
    policyVersions: [...versions],
  };
}

/** Yields the rows with routes. */
async function* readRows(dir: string): AsyncGenerator<Sample> {
  for await (const { text } of readPlacedLines(storedFiles, path.join(dir, "samples.jsonl"))) {
    const row = parseLine(text) as Sample | undefined;
    if ((row?.columns?.routedExperts ?? []).length > 0) yield row!;
  }
}

/** Returns the bytes of the routes of all ids, computed now. The token that is sampled after them has none. */
async function requestRoutes(
  ids: readonly number[],
  { engine, specs, stop }: Pick<RouteRescoreOptions, "engine" | "specs"> & { stop: AbortSignal },
): Promise<Uint8Array> {
  const { routedExperts } = specs;
  const request: GenerateRequest = {
    promptIds: ids,
    sampling: {},
    maxNewTokens: 1,
    stopTokenIds: [],
    columns: { specs: { routedExperts }, knownRows: 0 },
    requestId: "turnwright-routes",
    sessionId: `turnwright-routes-${ids.length}`,
  };
  const { columns } = checkGeneration(await engine.generate(request, { signal: stop }), request);
  return Buffer.concat((columns?.routedExperts ?? []).map(({ bytes }) => bytes!));
}

async function readAll(source: ColumnSource, parts: readonly ColumnPart[]): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for (const part of parts) all.push(await source.read(part));
  return Buffer.concat(all);
}

/** Counts the layers of tokens with equal experts: in the same order, and in any order. */
function countEqual(
  recorded: Uint8Array,
  again: Uint8Array,
  shape: ExpertShape,
): { readonly equal: number; readonly same: number } {
  const size = shape.perToken * expertBytes(shape);
  let [equal, same] = [0, 0];
  for (let at = 0; at < recorded.length; at += size) {
    const [one, other] = [recorded, again].map((bytes) =>
      Buffer.from(bytes.subarray(at, at + size)),
    );
    if (one!.equals(other!)) {
      equal += 1;
      same += 1;
    } else if (expertsOf(one!, shape).join() === expertsOf(other!, shape).join()) same += 1;
  }
  return { equal, same };
}

/** Returns a token's experts in a layer, sorted. */
function expertsOf(bytes: Buffer, shape: ExpertShape): readonly number[] {
  const width = expertBytes(shape);
  return Array.from({ length: bytes.length / width }, (_, index) =>
    bytes.readUIntLE(index * width, width),
  ).toSorted((one, two) => one - two);
}
