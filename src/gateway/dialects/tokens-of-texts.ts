import type { ReplyPart, ReplyToken } from "../conversation.ts";

/**
 * Returns the tokens of each text part, by the part's index. Other parts have an empty list.
 *
 * @param tokens - All tokens of the reply's text, including the markup of reasoning and calls.
 */
export function tokensOfTexts(
  parts: readonly ReplyPart[],
  tokens: readonly ReplyToken[],
): readonly (readonly ReplyToken[])[] {
  const bytes = Buffer.concat(tokens.map(({ bytes }) => bytes));
  let end = bytes.length;
  // From last to first, because the markup between reasoning and text may contain the same text.
  return parts
    .toReversed()
    .map((part): readonly ReplyToken[] => {
      const text = Buffer.from(part.text);
      const start = bytes.lastIndexOf(text, end - text.length);
      if (start === -1 || end < text.length) return [];
      const found = part.type === "text" ? tokensWithin(tokens, start, start + text.length) : [];
      end = start;
      return found;
    })
    .toReversed();
}

/** Returns the tokens with bytes between two offsets of their joined bytes. */
export function tokensWithin(
  tokens: readonly ReplyToken[],
  start: number,
  end: number,
): readonly ReplyToken[] {
  let at = 0;
  return tokens.filter(({ bytes: { length } }) => {
    at += length;
    return at > start && at - length < end;
  });
}
