import type { ExpertShape, IndexerShape } from "../../../columns/column-specs.ts";
import type { ColumnModel, ComputedToken, DrawnToken } from "./column-model.ts";
import type { LiveSequence } from "./request-scheduler.ts";

/**
 * Returns the computed tokens of a sequence from `start` on, without the last one. The version of a token is the one that
 * sampled the next token.
 */
export function computedTokens(
  { request: { inputIds }, outputIds, versionSpans }: LiveSequence,
  start: number,
): readonly ComputedToken[] {
  const ids = [...inputIds, ...outputIds];
  return Array.from({ length: Math.max(0, ids.length - 1 - start) }, (_, index) => {
    const position = start + index;
    const sampled = Math.max(0, position + 1 - inputIds.length);
    const span = versionSpans.find(({ end }) => sampled < end) ?? versionSpans.at(-1);
    return { id: ids[position]!, position, version: span?.version ?? "" };
  });
}

/** Encodes the experts of a sequence's tokens from `start` on. */
export function encodeExperts(
  sequence: LiveSequence,
  {
    start,
    shape,
    model,
    type,
  }: {
    readonly start: number;
    readonly shape: ExpertShape;
    readonly model: ColumnModel;
    readonly type: typeof Int32Array | typeof Uint16Array | typeof Uint8Array;
  },
): { readonly rows: number; readonly bytes: Buffer } {
  const tokens = computedTokens(sequence, start);
  const { layerCount } = shape;
  const values = tokens.flatMap((token) => layersOf(layerCount, (at) => model.experts(token, at)));
  return { rows: tokens.length, bytes: Buffer.from(type.from(values).buffer) };
}

/** Encodes the indexer's positions of all tokens of a sequence, as 32-bit numbers. */
export function encodePositions(
  sequence: LiveSequence,
  { shape: { layerCount }, model }: { readonly shape: IndexerShape; readonly model: ColumnModel },
): Buffer {
  const tokens = computedTokens(sequence, 0);
  const values = tokens.flatMap((token) =>
    layersOf(layerCount, (at) => model.positions(token, at)),
  );
  return Buffer.from(Int32Array.from(values).buffer);
}

function layersOf(count: number, read: (layer: number) => readonly number[]): number[] {
  return Array.from({ length: count }, (_, layer) => read(layer)).flat();
}

/** Returns the sampled tokens of a sequence from `start` on. */
export function drawnTokens(
  { outputIds, outputLogprobs }: LiveSequence,
  start: number,
): readonly DrawnToken[] {
  return outputIds.slice(start).map((id, offset) => {
    const index = start + offset;
    return { id, index, logprob: outputLogprobs[index] ?? Number.NaN };
  });
}
