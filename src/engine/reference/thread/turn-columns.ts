import type { ColumnSpecs } from "../../../columns/column-specs.ts";
import type { ColumnRequest } from "../../engine.ts";
import type { SampledColumns } from "../../in-process/to-generation.ts";
import { GrowingRows } from "./growing-rows.ts";

/** Copies the routes of a sequence's positions from `from` to before `end`. */
export type ReadRoutes = (range: { from: number; end: number }) => Uint8Array;

/** The side columns of a turn, collected token by token. */
export class TurnColumns {
  readonly specs: ColumnSpecs;
  /** Number of rows of `routedExperts` that are known or collected. */
  #routeEnd: number;
  readonly #routes: Uint8Array[] = [];
  readonly #kept = new GrowingRows();
  readonly #top = new GrowingRows();

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
    this.#kept.add(ids);
  }

  /** Adds the most probable ids at a sampled token, the most probable first. */
  addTop(ids: readonly number[], logprobs: readonly number[]): void {
    this.#top.add(ids, logprobs);
  }

  toBytes(): SampledColumns {
    const { routedExperts, keptTokens, topLogprobs } = this.specs;
    return {
      // A copy, because a message to another thread would contain the complete pool of a small buffer.
      ...(routedExperts !== undefined && {
        routedExperts: new Uint8Array(Buffer.concat(this.#routes)),
      }),
      ...(keptTokens !== undefined && { keptTokens: this.#kept.toBytes() }),
      ...(topLogprobs !== undefined && { topLogprobs: this.#top.toBytes() }),
    };
  }
}
