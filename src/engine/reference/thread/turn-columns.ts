import type { ColumnSpecs } from "../../../columns/column-specs.ts";
import { encodeRagged } from "../../../columns/ragged-rows.ts";
import type { ColumnRequest } from "../../engine.ts";
import type { SampledColumns } from "../../in-process/to-generation.ts";

/** Copies the routes of a sequence's positions from `from` to before `end`. */
export type ReadRoutes = (range: { from: number; end: number }) => Uint8Array;

/** Rows of different lengths that grow. */
interface GrowingRows {
  readonly counts: number[];
  readonly ids: number[];
  readonly logprobs: number[];
}

/** The side columns of a turn, collected token by token. */
export class TurnColumns {
  readonly specs: ColumnSpecs;
  /** Number of rows of `routedExperts` that are known or collected. */
  #routeEnd: number;
  readonly #routes: Uint8Array[] = [];
  readonly #kept: GrowingRows = { counts: [], ids: [], logprobs: [] };
  readonly #top: GrowingRows = { counts: [], ids: [], logprobs: [] };

  constructor({ specs, knownRows }: ColumnRequest) {
    this.specs = specs;
    this.#routeEnd = knownRows;
  }

  /** Adds the routes of the tokens before `end`. All of them are computed. */
  addRoutes(readRoutes: ReadRoutes, end: number): void {
    if (this.specs.routedExperts === undefined || end <= this.#routeEnd) return;
    this.#routes.push(readRoutes({ from: this.#routeEnd, end }));
    this.#routeEnd = end;
  }

  /** Adds the kept ids of a sampled token, the most probable first. */
  addKept(ids: readonly number[]): void {
    addRow(this.#kept, ids);
  }

  /** Adds the most probable ids at a sampled token, the most probable first. */
  addTop(ids: readonly number[], logprobs: readonly number[]): void {
    addRow(this.#top, ids, logprobs);
  }

  toBytes(): SampledColumns {
    const { routedExperts, keptTokens, topLogprobs } = this.specs;
    return {
      // A copy, because a message to another thread would contain the complete pool of a small buffer.
      ...(routedExperts !== undefined && {
        routedExperts: new Uint8Array(Buffer.concat(this.#routes)),
      }),
      ...(keptTokens !== undefined && { keptTokens: encodeRagged(toRagged(this.#kept)) }),
      ...(topLogprobs !== undefined && {
        topLogprobs: encodeRagged({
          ...toRagged(this.#top),
          logprobs: Float32Array.from(this.#top.logprobs),
        }),
      }),
    };
  }
}

function addRow(rows: GrowingRows, ids: readonly number[], logprobs: readonly number[] = []): void {
  rows.counts.push(ids.length);
  for (const id of ids) rows.ids.push(id);
  for (const logprob of logprobs) rows.logprobs.push(logprob);
}

function toRagged({ counts, ids }: GrowingRows) {
  return { counts: Uint32Array.from(counts), ids: Int32Array.from(ids) };
}
