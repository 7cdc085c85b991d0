import { ShortPieces } from "./short-pieces.ts";
import { copyOf } from "./text-divider.ts";

/** Minimum number of recent pieces before older ones are dropped. */
const defaultRecentCount = 32_768;

/** Maximum size of recent pieces, in bytes. Far more than that many ordinary words take. */
const defaultRecentSize = 4 * 1024 * 1024;

/** Maximum length of a piece to keep, in UTF-16 units. Longer pieces seldom occur again. */
const maxLength = 1024;

/** The size of a memory of pieces. */
export interface PieceMemoryBounds {
  /** Minimum number of pieces to keep; the maximum is twice that. Default 32,768. */
  readonly recentCount?: number;
  /** Maximum size of recent pieces in bytes; older ones may take the same again. Default 4 MiB. */
  readonly recentSize?: number;
}

/** The id of a piece, or its ids if there are several. */
export type PieceIds = number | readonly number[];

/** The ids of pieces that occurred lately. A model encodes each piece alone. */
export class PieceMemory {
  readonly #recentCount: number;
  readonly #recentSize: number;
  #recent = new Map<string, PieceIds>();
  /** Size of the recent pieces, in bytes. */
  #size = 0;
  #older: ReadonlyMap<string, PieceIds> = new Map();
  /** An index of short recent pieces, which is faster than the Map. */
  readonly #short = new ShortPieces();

  constructor({
    recentCount = defaultRecentCount,
    recentSize = defaultRecentSize,
  }: PieceMemoryBounds = {}) {
    this.#recentCount = recentCount;
    this.#recentSize = recentSize;
  }

  /** Appends the ids of a part of a text. Returns `false` if they are not known. */
  append(ids: number[], text: string, from: number, end: number): boolean {
    if (this.#short.append(ids, text, from, end)) return true;
    const known = this.find(text.slice(from, end));
    if (known === undefined) return false;
    this.#short.keep(known, text, from, end);
    if (typeof known === "number") ids.push(known);
    else for (const id of known) ids.push(id);
    return true;
  }

  /** Returns a piece's ids, and makes it a recent one. */
  find(piece: string): PieceIds | undefined {
    const recent = this.#recent.get(piece);
    if (recent !== undefined) return recent;
    const older = this.#older.get(piece);
    if (older !== undefined) this.keep(piece, typeof older === "number" ? [older] : older);
    return older;
  }

  /** Keeps the ids of a piece. */
  keep(piece: string, ids: readonly number[]): void {
    if (piece.length > maxLength) return;
    // One or two bytes for each unit of the text, eight for each id.
    const size = piece.length * 2 + ids.length * 8;
    if (this.#recent.size >= this.#recentCount || this.#size + size > this.#recentSize) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#size = 0;
      this.#short.clear();
    }
    this.#size += size;
    const [only] = ids;
    // A slice would keep the complete text in memory.
    const key = copyOf(piece);
    this.#recent.set(key, only !== undefined && ids.length === 1 ? only : [...ids]);
  }

  clear(): void {
    this.#recent.clear();
    this.#older = new Map();
    this.#size = 0;
    this.#short.clear();
  }
}
