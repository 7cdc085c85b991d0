import type { JsonObject } from "../values/is-object.ts";

/** An added token with all settings that the library needs. */
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
 * Reads the added tokens of a tokenizer's document. Returns `undefined` if one relies on a default
 * of the library.
 */
export function readAddedTokenRecords(
  outline: JsonObject,
): readonly AddedTokenRecord[] | undefined {
  const { added_tokens: tokens = [] } = outline;
  if (!Array.isArray(tokens)) return undefined;
  const records = tokens as readonly AddedTokenRecord[];
  const flags = ["special", "single_word", "lstrip", "rstrip", "normalized"] as const;
  const isComplete = (token: AddedTokenRecord): boolean =>
    !/\p{Surrogate}/u.test(token.content) &&
    flags.every((flag) => typeof token[flag] === "boolean");
  return records.every(isComplete) ? records : undefined;
}
