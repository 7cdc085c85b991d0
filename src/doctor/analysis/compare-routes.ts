import type { RouteTable } from "../input/trainer-row.ts";

/** Figures on the routes of tokens for which both sides have routes. JSON-able. */
export interface RouteFigures {
  /** Number of tokens whose routes were compared. */
  readonly tokenCount: number;
  /** Number of tokens for which only the engine has routes. */
  readonly missingCount: number;
  /** Share of token-layer pairs in which the two sides have different sets of experts. Dense layers do not count. */
  readonly differingShare: number;
  /** Share of token-layer pairs in which the two sides have different experts, or the same experts in another order. */
  readonly reorderedShare: number;
  /** Share of tokens with different experts in at least one layer. */
  readonly differingTokenShare: number;
  /**
   * Share of tokens for which the trainer has only filler and the engine has other ids. Filler is 0, 1, 2, … in each
   * layer, or only 0 or -1.
   */
  readonly paddedShare: number;
  /** Share of tokens for which the trainer has the engine's routes of the previous token instead of their own. */
  readonly laterShare: number;
  /** Share of tokens for which the trainer has the engine's routes of the next token instead of their own. */
  readonly earlierShare: number;
  /** `differingShare` by layer. `undefined` for dense layers, as JSON `null`. */
  readonly byLayer: readonly (number | null)[];
}

/** The states of a token's routes. The routes of a token affect the logprob of the next token. */
export const routeStates = { unknown: 0, equal: 1, differing: 2 } as const;

/** Compares routes row by row. */
export class RouteTally {
  #tokenCount = 0;
  #missingCount = 0;
  #pairCount = 0;
  #differing = 0;
  #reordered = 0;
  #differingTokens = 0;
  #padded = 0;
  #later = 0;
  #earlier = 0;
  readonly #layers: { count: number; differing: number }[] = [];

  /** Compares the routes of a row. Returns the state of the routes of each token for which the engine has routes. */
  add(engine: RouteTable, trainer: RouteTable): Uint8Array {
    const states = new Uint8Array(engine.rows);
    const shared = Math.min(engine.rows, trainer.rows);
    this.#missingCount += engine.rows - shared;
    for (let row = 0; row < shared; row++) {
      const isDiffering = this.#addToken(engine, trainer, row);
      states[row] = isDiffering ? routeStates.differing : routeStates.equal;
    }
    return states;
  }

  #addToken(engine: RouteTable, trainer: RouteTable, row: number): boolean {
    const { layerCount, perToken } = engine;
    const start = row * layerCount * perToken;
    let [differing, reordered, sparse, filler] = [0, 0, 0, 0];
    for (let layer = 0; layer < layerCount; layer++) {
      const at = start + layer * perToken;
      if (isDense(engine, at)) continue;
      const figures = (this.#layers[layer] ??= { count: 0, differing: 0 });
      figures.count += 1;
      sparse += 1;
      if (isFiller(trainer, at)) filler += 1;
      if (isSame(engine, at, trainer, at)) continue;
      reordered += 1;
      if (isSameSet(engine, trainer, at)) continue;
      differing += 1;
      figures.differing += 1;
    }
    this.#tokenCount += 1;
    this.#pairCount += sparse;
    this.#differing += differing;
    this.#reordered += reordered;
    if (differing === 0) return false;
    this.#differingTokens += 1;
    if (filler === sparse) this.#padded += 1;
    else if (this.#isOf(engine, row - 1, trainer, row)) this.#later += 1;
    else if (this.#isOf(engine, row + 1, trainer, row)) this.#earlier += 1;
    return true;
  }

  /** True if the trainer's routes of a token equal the engine's routes of another token. */
  #isOf(engine: RouteTable, other: number, trainer: RouteTable, row: number): boolean {
    if (other < 0 || other >= engine.rows) return false;
    const size = engine.layerCount * engine.perToken;
    for (let index = 0; index < size; index++) {
      if (engine.ids[other * size + index] !== trainer.ids[row * size + index]) return false;
    }
    return true;
  }

  /** Adds the rows of another tally. */
  addAll(other: RouteTally): void {
    this.#tokenCount += other.#tokenCount;
    this.#missingCount += other.#missingCount;
    this.#pairCount += other.#pairCount;
    this.#differing += other.#differing;
    this.#reordered += other.#reordered;
    this.#differingTokens += other.#differingTokens;
    this.#padded += other.#padded;
    this.#later += other.#later;
    this.#earlier += other.#earlier;
    for (const [layer, figures] of other.#layers.entries()) {
      // Dense layers have none.
      if (figures === undefined) continue;
      const own = (this.#layers[layer] ??= { count: 0, differing: 0 });
      own.count += figures.count;
      own.differing += figures.differing;
    }
  }

  /** Returns the figures, or `undefined` if no token was compared. */
  figures(): RouteFigures | undefined {
    const count = this.#tokenCount;
    if (count === 0 || this.#pairCount === 0) return undefined;
    return {
      tokenCount: count,
      missingCount: this.#missingCount,
      differingShare: this.#differing / this.#pairCount,
      reorderedShare: this.#reordered / this.#pairCount,
      differingTokenShare: this.#differingTokens / count,
      paddedShare: this.#padded / count,
      laterShare: this.#later / count,
      earlierShare: this.#earlier / count,
      byLayer: Array.from(this.#layers, (layer) =>
        layer === undefined ? null : layer.differing / layer.count,
      ),
    };
  }
}

/** True if a layer has no experts: it has zeros, and no token is routed to one expert twice. */
function isDense({ ids, perToken }: RouteTable, at: number): boolean {
  if (perToken < 2) return false;
  return ids[at] === 0 && ids[at + 1] === 0;
}

/** True for 0, 1, 2, …, and for 0 or -1 throughout, with which trainers fill up. */
function isFiller({ ids, perToken }: RouteTable, at: number): boolean {
  let [isCounting, isZero, isMissing] = [true, true, true];
  for (let index = 0; index < perToken; index++) {
    if (ids[at + index] !== index) isCounting = false;
    if (ids[at + index] !== 0) isZero = false;
    if (ids[at + index] !== -1) isMissing = false;
  }
  return isCounting || isZero || isMissing;
}

function isSame(one: RouteTable, at: number, other: RouteTable, otherAt: number): boolean {
  for (let index = 0; index < one.perToken; index++) {
    if (one.ids[at + index] !== other.ids[otherAt + index]) return false;
  }
  return true;
}

function isSameSet(one: RouteTable, other: RouteTable, at: number): boolean {
  for (let index = 0; index < one.perToken; index++) {
    let isFound = false;
    for (let place = 0; place < one.perToken; place++) {
      if (one.ids[at + index] === other.ids[at + place]) isFound = true;
    }
    if (!isFound) return false;
  }
  return true;
}
