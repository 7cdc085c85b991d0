import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import type { PieceMerger } from "./merge-piece.ts";
import type { PieceMemory } from "./piece-memory.ts";
import type { PieceCutter } from "./piece-splitter.ts";

/**
 * Maximum length of a text to encode without yielding, in UTF-16 units: a fraction of a
 * millisecond.
 */
const maxTextLength = 8192;

/** The parts of a tokenizer that encoding needs. */
interface TextEncoderParts {
  readonly cutter: PieceCutter;
  readonly memory: PieceMemory;
  readonly merger: PieceMerger;
  /** The ids of the added tokens by their texts. */
  readonly addedIds: ReadonlyMap<string, number>;
  /** Encodes a stretch that only the library can cut. It has no text of an added token. */
  readonly encodeByLibrary: (stretch: string) => Promise<readonly number[]>;
}

/** A piece that is too long to merge at once. Its ids belong at a position in the list of ids. */
interface LongPiece {
  readonly place: number;
  readonly bytes: Buffer;
}

/** Encodes texts of any length by cutting and merging them here, in small steps. */
export class BytePairTextEncoder {
  readonly #parts: TextEncoderParts;

  constructor(parts: TextEncoderParts) {
    this.#parts = parts;
  }

  /** Returns the text's ids, or `undefined` if that takes long or needs the library. */
  encodeNow(text: string): number[] | undefined {
    if (text.length > maxTextLength) return undefined;
    const ids: number[] = [];
    for (const { kind, text: stretch } of this.#parts.cutter.divide(text, true)) {
      if (kind === "unsettled") return undefined;
      if (kind === "token") {
        ids.push(this.#parts.addedIds.get(stretch) as number);
        continue;
      }
      for (let at = 0; at < stretch.length;) {
        const { end, long } = this.#encodePieces(stretch, at, ids);
        if (long !== undefined) return undefined;
        at = end;
      }
    }
    return ids;
  }

  /**
   * Returns the text's ids. Yields to other tasks.
   *
   * @param findsTokens - False if texts of added tokens are ordinary text.
   * @throws RolloutError `internal/tokenizer` if the library fails.
   */
  async encode(text: string, findsTokens: boolean): Promise<number[]> {
    const ids: number[] = [];
    for (const { kind, text: stretch } of this.#parts.cutter.divide(text, findsTokens)) {
      if (kind === "token") {
        ids.push(this.#parts.addedIds.get(stretch) as number);
        continue;
      }
      if (kind === "unsettled") {
        await appendInSteps(ids, await this.#parts.encodeByLibrary(stretch));
        continue;
      }
      for (let at = 0; at < stretch.length;) {
        if (isShareOver()) await takeTurn();
        const { end, long } = this.#encodePieces(stretch, at, ids);
        at = end;
        if (long === undefined) continue;
        if (isShareOver()) await takeTurn();
        await this.#insertLong(long, ids);
      }
    }
    return ids;
  }

  /** Appends the ids of the next pieces of a stretch, except those of long pieces. */
  #encodePieces(
    stretch: string,
    at: number,
    ids: number[],
  ): { readonly end: number; readonly long: readonly LongPiece[] | undefined } {
    const { cutter, memory } = this.#parts;
    const { ends, count } = cutter.cut(stretch, at);
    let long: LongPiece[] | undefined;
    let from = at;
    for (let place = 0; place < count; place++) {
      const end = ends[place] as number;
      if (!memory.append(ids, stretch, from, end)) {
        const bytes = this.#mergePiece(stretch.slice(from, end), ids);
        if (bytes !== undefined) (long ??= []).push({ place: ids.length, bytes });
      }
      from = end;
    }
    return { end: from, long };
  }

  /** Appends the ids of a new piece. Returns its bytes instead if it is too long. */
  #mergePiece(piece: string, ids: number[]): Buffer | undefined {
    const bytes = Buffer.from(piece);
    const merged = this.#parts.merger.mergeNow(bytes);
    if (merged === undefined) return bytes;
    this.#parts.memory.keep(piece, merged);
    for (const id of merged) ids.push(id);
    return undefined;
  }

  /** Merges long pieces and inserts their ids. Yields to other tasks. */
  async #insertLong(pieces: readonly LongPiece[], ids: number[]): Promise<void> {
    const [first] = pieces;
    if (first === undefined) return;
    const start = first.place;
    const rest = ids.splice(start);
    for (const [index, { place, bytes }] of pieces.entries()) {
      await appendInSteps(ids, await this.#parts.merger.merge(bytes));
      const next = pieces[index + 1]?.place ?? start + rest.length;
      await appendInSteps(ids, rest.slice(place - start, next - start));
    }
  }
}

/** Number of ids that are appended between two checks of the event loop. */
const idsPerStep = 8192;

/** Appends ids to a list. Yields to other tasks. */
async function appendInSteps(ids: number[], added: readonly number[]): Promise<void> {
  for (let at = 0; at < added.length; at += idsPerStep) {
    if (isShareOver()) await takeTurn();
    const end = Math.min(added.length, at + idsPerStep);
    for (let from = at; from < end; from++) ids.push(added[from] as number);
  }
}
