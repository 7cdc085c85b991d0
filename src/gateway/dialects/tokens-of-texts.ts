import type { ReplyPart, ReplyToken } from "../conversation.ts";

/**
 * The tokens of each part of a reply that is text, by its place among the parts; empty for other parts.
 *
 * @param tokens - All tokens of the reply's text; markup of reasoning and calls is among them.
 */
export function tokensOfTexts(
  parts: readonly ReplyPart[],
  tokens: readonly ReplyToken[],
): readonly (readonly ReplyToken[])[] {
  const whole = Buffer.concat(tokens.map(({ bytes }) => bytes));
  let end = whole.length;
  // From the last part to the first: the markup between reasoning and text may contain the text.
  return parts
    .toReversed()
    .map((part): readonly ReplyToken[] => {
      const text = Buffer.from(part.text);
      const start = whole.lastIndexOf(text, end - text.length);
      if (start === -1 || end < text.length) return [];
      const found = part.type === "text" ? tokensWithin(tokens, start, start + text.length) : [];
      end = start;
      return found;
    })
    .toReversed();
}

function tokensWithin(
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
