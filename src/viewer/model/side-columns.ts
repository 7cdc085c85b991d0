import type { ColumnPart, ColumnParts } from "../../columns/column-part.ts";
import { columnNames, type ColumnName } from "../../columns/column-specs.ts";
import type { TokenPiece } from "./row-columns.ts";
import { tokenText } from "./visible-text.ts";
import { formatCount } from "../../text/format-count.ts";

/** A side column of a training row, as the row's parts describe it. */
export interface SideColumn {
  readonly name: ColumnName;
  readonly partCount: number;
  readonly rowCount: number;
  readonly byteCount: number;
}

/** The result of comparing the bytes of a row's column with their hashes. JSON-able. */
export interface ColumnCheck {
  readonly partCount: number;
  readonly byteCount: number;
  /** The faults: one for each part with missing bytes, or with other bytes than the engine returned. */
  readonly faults: readonly string[];
}

/** The values of a side column for one token. JSON-able. */
export type TokenColumn =
  | {
      readonly kind: "layers";
      /** The first ids or positions of each layer, in the engine's order. */
      readonly layers: readonly (readonly number[])[];
      /** Number of ids or positions that the column has for each layer. */
      readonly perToken: number;
      readonly policyVersion: string;
    }
  | {
      readonly kind: "tokens";
      /** The first ids, in the engine's order. */
      readonly ids: readonly number[];
      /** `logprobs[i]` is that of `ids[i]`. Absent in columns without logprobs. */
      readonly logprobs?: readonly number[];
      /** Number of ids that the column has for the token. */
      readonly count: number;
      /** The texts of the ids. Absent if the tokenizer is not available. */
      readonly pieces?: readonly TokenPiece[];
      readonly policyVersion: string;
    };

/** The columns' names and meanings for people. */
export const columnWords: Readonly<
  Record<ColumnName, { readonly title: string; readonly meaning: string }>
> = {
  routedExperts: {
    title: "routed experts",
    meaning: "the experts that each layer sent the token to while the engine computed it",
  },
  keptTokens: {
    title: "kept tokens",
    meaning: "the ids that top-k and top-p kept when the token was drawn",
  },
  topLogprobs: {
    title: "top logprobs",
    meaning: "the most probable ids at this place, with their logprobs",
  },
  indexerTopK: {
    title: "indexer positions",
    meaning: "the positions that the sparse-attention indexer selected for the token",
  },
};

/** Returns the side columns of a row, in a fixed order. */
export function sideColumnsOf(parts: ColumnParts): readonly SideColumn[] {
  return columnNames.flatMap((name) => {
    const own = parts[name];
    if (own === undefined) return [];
    const sum = (member: "rows" | "size"): number =>
      own.reduce((total, part) => total + part[member], 0);
    return [{ name, partCount: own.length, rowCount: sum("rows"), byteCount: sum("size") }];
  });
}

/** Returns the part that has the row of a token. */
export function partAt(
  parts: readonly ColumnPart[] | undefined,
  token: number,
): ColumnPart | undefined {
  if (!Number.isSafeInteger(token)) return undefined;
  return parts?.find(({ from, rows }) => token >= from && token < from + rows);
}

/** True if the ids of a layer are those of a dense one: more than one, and all 0. */
export function isDenseLayer(ids: readonly number[]): boolean {
  return ids.length > 1 && ids.every((id) => id === 0);
}

/** Returns a text for each id. A part of a character is shown by its bytes. */
export function spellPieces(
  pieces: readonly TokenPiece[] | undefined,
): ReadonlyMap<number, string> {
  return new Map(
    (pieces ?? []).map(([id, text, form]) => [
      id,
      form === "bytes" ? `0x${text}` : tokenText(text) || "∅",
    ]),
  );
}

/** Formats the number of parts. */
export function formatParts(count: number): string {
  return count === 1 ? "1 part" : `${formatCount(count)} parts`;
}
