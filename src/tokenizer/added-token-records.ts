import type * as library from "tokenizers";
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
  const tokens = (outline["added_tokens"] ?? []) as readonly AddedTokenRecord[];
  const flags = ["special", "single_word", "lstrip", "rstrip", "normalized"] as const;
  const isWhole = (token: AddedTokenRecord): boolean =>
    flags.every((flag) => typeof token[flag] === "boolean");
  return tokens.every(isWhole) ? tokens : undefined;
}

/** The same in the library's own form. */
export function toLibraryTokens(
  AddedToken: typeof library.AddedToken,
  records: readonly AddedTokenRecord[],
): library.AddedToken[] {
  return records.map(
    ({ content, special, ...options }) =>
      new AddedToken(content, special, {
        singleWord: options.single_word,
        leftStrip: options.lstrip,
        rightStrip: options.rstrip,
        normalized: options.normalized,
      }),
  );
}
