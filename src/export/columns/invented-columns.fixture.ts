import { createColumnPart } from "../../columns/column-part.ts";
import { expertBytes, type ColumnName, type ColumnSpecs } from "../../columns/column-specs.ts";
import type { ColumnPart, ColumnParts } from "../../columns/index.ts";
import { encodeRagged } from "../../columns/ragged-rows.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** The content of a row's columns, by token. JSON-able. */
export interface ColumnTruth {
  readonly rolloutId: string;
  readonly segment: number;
  /** `routedExperts[token][layer]` are the experts of a token. The last token of the list is the last computed one. */
  readonly routedExperts?: readonly (readonly (readonly number[])[])[];
  readonly indexerTopK?: readonly (readonly (readonly number[])[])[];
  /** `keptTokens[token]` are the ids of a token. Empty if it was not sampled. */
  readonly keptTokens?: readonly (readonly number[])[];
  /** `topLogprobs[token]` are pairs of a logprob and an id. */
  readonly topLogprobs?: readonly (readonly (readonly [number, number])[])[];
}

type TokenName = "routedExperts" | "indexerTopK";

/** Returns a number that depends on a token, all tokens before it, and a salt. */
function mix(ids: readonly number[], token: number, salt: number): number {
  let hash = 2_166_136_261 ^ salt;
  for (const id of ids.slice(0, token + 1)) hash = Math.imul(hash ^ id, 16_777_619) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_519) >>> 0;
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** Returns the ids of a token in a layer. The first layer is dense: its experts are zeros. */
function tokenIds(name: TokenName, specs: ColumnSpecs, ids: readonly number[], token: number) {
  const { layerCount, perToken } = specs[name]!;
  const limit = specs.routedExperts?.expertCount ?? 8;
  return Array.from({ length: layerCount }, (_, layer) => {
    const first = mix(ids, token, layer + (name === "indexerTopK" ? 1000 : 0));
    return Array.from({ length: perToken }, (_, place) => {
      if (name === "indexerTopK") return (first + place) % (token + perToken);
      // An odd step, so that no expert occurs twice where the number of experts is even.
      return layer === 0 ? 0 : (first + place * (2 * (first % 3) + 1)) % limit;
    });
  });
}

function keptIds({ keptTokens }: ColumnSpecs, ids: readonly number[], token: number) {
  const count = 1 + (mix(ids, token, 7) % keptTokens!.maxCount);
  return [ids[token]!, ...Array.from({ length: count - 1 }, (_, place) => 150 + place)];
}

function topPairs({ topLogprobs }: ColumnSpecs, ids: readonly number[], token: number) {
  const first = -0.25 * (1 + (mix(ids, token, 9) % 4));
  return Array.from({ length: topLogprobs!.count }, (_, place) => [
    first - place,
    (ids[token]! + place) % 200,
  ]) as (readonly [number, number])[];
}

/** The tokens of a row that one reply brought: those sampled by one version, with the computed ones before. */
interface Reply {
  readonly start: number;
  readonly end: number;
  readonly policyVersion: string;
}

function repliesOf({ turns, policyVersions }: Sample): readonly Reply[] {
  const replies: Reply[] = [];
  for (const { start, end } of turns) {
    for (let from = start; from < end;) {
      const policyVersion = policyVersions[from]!;
      let to = from;
      while (to < end && policyVersions[to] === policyVersion) to++;
      replies.push({ start: from, end: to, policyVersion });
      from = to;
    }
  }
  return replies;
}

/**
 * Returns columns for a row, with a part for each reply. The row shares parts with a row of the attempt before it, as far
 * as both have the same tokens.
 */
export function inventColumns(
  sample: Sample,
  before: readonly (Sample & { readonly columns: ColumnParts })[],
  specs: ColumnSpecs,
): ColumnParts {
  const columns: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of ["routedExperts", "indexerTopK"] as const) {
    if (specs[name] === undefined) continue;
    columns[name] = tokenParts(name, sample, before, specs);
  }
  for (const name of ["keptTokens", "topLogprobs"] as const) {
    if (specs[name] === undefined) continue;
    columns[name] = repliesOf(sample).map((reply) => sampledPart(name, sample, reply, specs));
  }
  return columns;
}

function tokenParts(
  name: TokenName,
  sample: Sample,
  before: readonly (Sample & { readonly columns: ColumnParts })[],
  specs: ColumnSpecs,
): readonly ColumnPart[] {
  const parts: ColumnPart[] = [...sharedParts(name, sample, before)];
  let known = parts.reduce((sum, { rows }) => sum + rows, 0);
  for (const { end, policyVersion } of repliesOf(sample)) {
    const rows = end - 1 - known;
    const values = Array.from({ length: rows }, (_, row) =>
      tokenIds(name, specs, sample.tokenIds, known + row),
    ).flat(2);
    const isByte = name === "routedExperts" && expertBytes(specs.routedExperts!) === 1;
    const list = isByte
      ? Uint8Array.from(values)
      : name === "routedExperts"
        ? Uint16Array.from(values)
        : Int32Array.from(values);
    const bytes = new Uint8Array(list.buffer);
    parts.push(createColumnPart({ from: known, rows, policyVersion, bytes }));
    known += rows;
  }
  return parts;
}

/** Returns the parts of the earlier row with which this row begins. */
function sharedParts(
  name: TokenName,
  sample: Sample,
  before: readonly (Sample & { readonly columns: ColumnParts })[],
): readonly ColumnPart[] {
  for (const { tokenIds: ids, columns } of before) {
    const parts = columns[name] ?? [];
    const shared = parts.filter(({ from, rows }) =>
      ids.slice(0, from + rows).every((id, token) => id === sample.tokenIds[token]),
    );
    if (shared.length > 0 && sample.promptLength > parts[0]!.rows) return shared;
  }
  return [];
}

function sampledPart(
  name: "keptTokens" | "topLogprobs",
  { tokenIds: ids }: Sample,
  { start, end, policyVersion }: Reply,
  specs: ColumnSpecs,
): ColumnPart {
  const tokens = Array.from({ length: end - start }, (_, index) => start + index);
  const pairs = tokens.map((token) =>
    name === "keptTokens"
      ? keptIds(specs, ids, token).map((id) => [0, id] as const)
      : topPairs(specs, ids, token),
  );
  const bytes = encodeRagged({
    counts: Uint32Array.from(pairs, ({ length }) => length),
    ids: Int32Array.from(pairs.flat(), ([, id]) => id),
    ...(name === "topLogprobs" && {
      logprobs: Float32Array.from(pairs.flat(), ([logprob]) => logprob),
    }),
  });
  return createColumnPart({ from: start, rows: end - start, policyVersion, bytes });
}

/** Returns the content of a row's columns. */
export function columnTruth(sample: Sample, specs: ColumnSpecs): ColumnTruth {
  const { rolloutId, segment, tokenIds: ids, lossMask, turns } = sample;
  const computed = Math.max(0, (turns.at(-1)?.end ?? 0) - 1);
  const rows = Array.from({ length: computed }, (_, token) => token);
  const sampled = <Value>(valuesOf: (token: number) => readonly Value[]) =>
    ids.map((_, token) => (lossMask[token] === 1 ? valuesOf(token) : []));
  return {
    rolloutId,
    segment,
    ...(specs.routedExperts && {
      routedExperts: rows.map((token) => tokenIds("routedExperts", specs, ids, token)),
    }),
    ...(specs.indexerTopK && {
      indexerTopK: rows.map((token) => tokenIds("indexerTopK", specs, ids, token)),
    }),
    ...(specs.keptTokens && { keptTokens: sampled((token) => keptIds(specs, ids, token)) }),
    ...(specs.topLogprobs && { topLogprobs: sampled((token) => topPairs(specs, ids, token)) }),
  };
}
