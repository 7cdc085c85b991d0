import type { JsonObject } from "./model-file.ts";

/** An added token with all that the library is told of it. */
export interface AddedTokenRecord {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  readonly single_word: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly normalized: boolean;
}

/**
 * The added tokens of a tokenizer's document; `undefined` where one of them leaves something to the library.
 */
export function readAddedTokenRecords(
  outline: JsonObject,
): readonly AddedTokenRecord[] | undefined {
  const { added_tokens: tokens = [] } = outline;
  if (!Array.isArray(tokens)) return undefined;
  const records = tokens as readonly AddedTokenRecord[];
  const flags = ["special", "single_word", "lstrip", "rstrip", "normalized"] as const;
  const isWhole = (token: AddedTokenRecord): boolean =>
    !/\p{Surrogate}/u.test(token.content) &&
    flags.every((flag) => typeof token[flag] === "boolean");
  return records.every(isWhole) ? records : undefined;
}
