import { createColumnPart, type ColumnParts } from "../columns/column-part.ts";
import { expertBytes, type ColumnSpecs, type ExpertShape } from "../columns/column-specs.ts";
import { encodeRagged } from "../columns/ragged-rows.ts";
import type { ColumnRequest, Engine, Generation } from "../engine/engine.ts";
import { passOn } from "../engine/pass-on.ts";

/**
 * Adds side columns to an engine: invented values that depend only on the ids, their places and the policy version. A
 * test can compute each row of a column again (`inventedRoutes()`, `inventedSet()`), and so finds rows that were lost,
 * shifted or taken from other weights.
 *
 * @param engine - The engine, whose tokens and logprobs stay as they are.
 */
export function withInventedColumns(engine: Engine): Engine {
  return {
    ...passOn(engine),
    async generate({ columns, ...request }, options) {
      const generation = await engine.generate(request, options);
      if (columns === undefined || generation.outputIds.length === 0) return generation;
      const ids = [...request.promptIds, ...generation.outputIds];
      return { ...generation, columns: inventColumns(ids, { columns, generation }) };
    },
    describe: async (options) => ({
      ...(await engine.describe(options)),
      columns: ["routedExperts", "keptTokens", "topLogprobs"],
    }),
  };
}

function inventColumns(
  ids: readonly number[],
  {
    columns: { specs, knownRows },
    generation,
  }: { readonly columns: ColumnRequest; readonly generation: Generation },
): ColumnParts {
  const { outputIds, pieces } = generation;
  const policyVersion = pieces[0]?.policyVersion ?? "";
  const promptLength = ids.length - outputIds.length;
  const rows = ids.length - 1 - knownRows;
  const sampled = { from: promptLength, rows: outputIds.length, policyVersion };
  return {
    ...(specs.routedExperts !== undefined &&
      rows > 0 && {
        routedExperts: [
          createColumnPart({
            from: knownRows,
            rows,
            policyVersion,
            bytes: inventedRoutes(ids, {
              from: knownRows,
              rows,
              policyVersion,
              shape: specs.routedExperts,
            }),
          }),
        ],
      }),
    ...(specs.keptTokens !== undefined && {
      keptTokens: [createColumnPart({ ...sampled, bytes: inventedSets(outputIds, specs) })],
    }),
    ...(specs.topLogprobs !== undefined && {
      topLogprobs: [createColumnPart({ ...sampled, bytes: inventedTops(outputIds, specs) })],
    }),
  };
}

/**
 * Returns the bytes of invented routes: row i has `perToken` different experts a layer, which depend on id, place,
 * layer and version.
 */
export function inventedRoutes(
  ids: readonly number[],
  {
    from,
    rows,
    policyVersion,
    shape,
  }: {
    readonly from: number;
    readonly rows: number;
    readonly policyVersion: string;
    readonly shape: ExpertShape;
  },
): Uint8Array {
  const { layerCount, perToken, expertCount } = shape;
  const size = rows * layerCount * perToken;
  const list = expertBytes(shape) === 1 ? new Uint8Array(size) : new Uint16Array(size);
  const salt = [...policyVersion].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7);
  let at = 0;
  for (let place = from; place < from + rows; place++) {
    for (let layer = 0; layer < layerCount; layer++) {
      const first = (ids[place]! * 7 + place * 13 + layer * 29 + salt) % expertCount;
      for (let rank = 0; rank < perToken; rank++) list[at++] = (first + rank) % expertCount;
    }
  }
  return new Uint8Array(list.buffer);
}

/** Returns the invented set of a sampled id: the id itself, and 0 to `count - 1` ids beside it. */
export function inventedSet(id: number, count: number): readonly number[] {
  return inventedTop(id, 1 + (id % count));
}

/**
 * Returns the invented alternatives of a sampled id: the id itself and the ids below it, or above it if there are too
 * few below.
 */
export function inventedTop(id: number, length: number): readonly number[] {
  return Array.from({ length }, (_, rank) => (id >= length ? id - rank : id + rank));
}

function inventedSets(ids: readonly number[], { keptTokens }: ColumnSpecs): Uint8Array {
  const sets = ids.map((id) => inventedSet(id, keptTokens!.maxCount));
  return encodeRagged({
    counts: Uint32Array.from(sets, ({ length }) => length),
    ids: Int32Array.from(sets.flat()),
  });
}

function inventedTops(ids: readonly number[], { topLogprobs }: ColumnSpecs): Uint8Array {
  const { count } = topLogprobs!;
  return encodeRagged({
    counts: new Uint32Array(ids.length).fill(count),
    ids: Int32Array.from(ids.flatMap((id) => inventedTop(id, count))),
    logprobs: Float32Array.from(
      ids.flatMap(() => Array.from({ length: count }, (_, rank) => -0.5 - rank)),
    ),
  });
}
