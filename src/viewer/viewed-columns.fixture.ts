import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { createColumnPart, withoutBytes, type ColumnPart } from "../columns/column-part.ts";
import type { ColumnName, ColumnSpecs } from "../columns/column-specs.ts";
import { encodeRagged } from "../columns/ragged-rows.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { Sample } from "../trajectory/sample.ts";

/** The side columns of the runs of these tests. */
export const viewedSpecs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 300 },
  keptTokens: { maxCount: 4 },
  topLogprobs: { count: 2 },
  indexerTopK: { layerCount: 1, perToken: 40 },
} as const satisfies ColumnSpecs;

/** Returns the experts of a token. The first layer is dense. */
export function expertsAt(token: number): readonly (readonly number[])[] {
  return [
    [0, 0],
    [token % 300, 299],
    [7, token % 7],
  ];
}

/** Returns the ids that were kept for a sampled token: 1 to 4 of them, the token's own last. */
export function keptAt(token: number, id: number): readonly number[] {
  return [...[1, 2, 3].slice(0, token % 4), id];
}

/** Returns the most probable ids for a sampled token. Its own is the second one at even places, else absent. */
export function topAt(token: number, id: number): readonly number[] {
  return [4, token % 2 === 0 ? id : 5];
}

/**
 * Adds side columns to a row: a part for each turn, and of the kinds with a row for each computed token a part up to
 * each turn's last token.
 */
export function addColumns(sample: Sample): {
  readonly sample: Sample;
  readonly parts: readonly ColumnPart[];
} {
  const { tokenIds, turns } = sample;
  const columns: Record<ColumnName, ColumnPart[]> = {
    routedExperts: [],
    keptTokens: [],
    topLogprobs: [],
    indexerTopK: [],
  };
  let known = 0;
  for (const { start, end } of turns) {
    const add = (name: ColumnName, [from, to]: readonly [number, number], bytes: Uint8Array) =>
      columns[name].push(createColumnPart({ from, rows: to - from, policyVersion: "7", bytes }));
    const computed = range(known, end - 1);
    const experts = computed.flatMap((token) => expertsAt(token).flat());
    add("routedExperts", [known, end - 1], bytesOf(Uint16Array.from(experts)));
    const positions = computed.flatMap((token) => range(token, token + 40));
    add("indexerTopK", [known, end - 1], bytesOf(Int32Array.from(positions)));
    const sampled = range(start, end);
    add("keptTokens", [start, end], ragged(sampled.map((at) => keptAt(at, tokenIds[at]!))));
    add(
      "topLogprobs",
      [start, end],
      ragged(
        sampled.map((at) => topAt(at, tokenIds[at]!)),
        [-0.5, -2],
      ),
    );
    known = end - 1;
  }
  const parts = Object.values(columns).flat();
  const named = Object.fromEntries(
    Object.entries(columns).map(([name, own]) => [name, own.map(withoutBytes)]),
  );
  return { sample: { ...sample, columns: named }, parts };
}

/** Writes the bytes of parts into a run's folder as a run does, and adds the specs to `run.json`. */
export async function writeViewedColumns(dir: string, parts: readonly ColumnPart[]): Promise<void> {
  const folder = path.join(dir, "columns");
  await mkdir(folder, { recursive: true });
  const file = "start-0-0000.bin";
  let at = 0;
  let index = "";
  for (const { hash, size } of parts) {
    index += `${JSON.stringify({ hash, file, at, size })}\n`;
    at += size;
  }
  await writeFile(path.join(folder, file), Buffer.concat(parts.map(({ bytes }) => bytes!)));
  await writeFile(path.join(folder, "start-0.jsonl"), index);
  const place = path.join(dir, "run.json");
  const manifest = JSON.parse(await readFile(place, "utf8")) as RunManifest;
  const found = { ...manifest.found, columns: viewedSpecs };
  await writeFile(place, JSON.stringify({ ...manifest, found }));
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

function bytesOf({ buffer }: Uint16Array<ArrayBuffer> | Int32Array<ArrayBuffer>): Uint8Array {
  return new Uint8Array(buffer);
}

function ragged(rows: readonly (readonly number[])[], logprobs?: readonly number[]): Uint8Array {
  return encodeRagged({
    counts: Uint32Array.from(rows, (row) => row.length),
    ids: Int32Array.from(rows.flat()),
    ...(logprobs && { logprobs: Float32Array.from(rows.flatMap(() => logprobs)) }),
  });
}
