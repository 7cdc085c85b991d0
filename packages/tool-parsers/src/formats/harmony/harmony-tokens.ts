/** A structural token, or the text between two of them. */
export interface HarmonyToken {
  readonly type: HarmonyTokenType | "text";
  readonly start: number;
  readonly end: number;
}

/** The structural tokens that the parser uses. */
type HarmonyTokenType = "start" | "channel" | "message" | "constrain" | "end" | "call" | "return";

/** The literals of the structural tokens. */
export const harmonyLiterals: readonly string[] = [
  "<|start|>",
  "<|channel|>",
  "<|message|>",
  "<|constrain|>",
  "<|end|>",
  "<|call|>",
  "<|return|>",
];

/**
 * Splits a text into structural tokens and text. An unknown token such as `<|weird|>` is text, and
 * includes everything up to the next `<|`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/harmony_parser.py` (`iter_tokens`).
 */
export function tokenizeHarmony(text: string): HarmonyToken[] {
  const tokens: HarmonyToken[] = [];
  let hasUnknown = false;
  let position = 0;
  /** The position after which the text contains no `|>`. */
  let lastClose = text.length;
  while (position < text.length) {
    const marker = text.indexOf("<|", position);
    if (marker === -1) break;
    if (marker > position) tokens.push({ type: "text", start: position, end: marker });
    const literal = harmonyLiterals.find((candidate) => text.startsWith(candidate, marker));
    if (literal !== undefined) {
      position = marker + literal.length;
      tokens.push({ type: typeOf(literal), start: marker, end: position });
      continue;
    }
    if (isPartialLiteral(text, marker)) {
      tokens.push({ type: "text", start: marker, end: text.length });
      position = text.length;
      break;
    }
    hasUnknown = true;
    tokens.push({ type: "text", start: marker, end: marker + 2 });
    const close = marker + 2 > lastClose ? -1 : text.indexOf("|>", marker + 2);
    if (close === -1) {
      lastClose = Math.min(lastClose, marker);
      position = marker + 2;
      continue;
    }
    const next = text.indexOf("<|", close + 2);
    position = next === -1 ? text.length : next;
    tokens.push({ type: "text", start: marker + 2, end: position });
  }
  return closeTokens(text, tokens, position, hasUnknown);
}

function closeTokens(
  text: string,
  tokens: HarmonyToken[],
  position: number,
  hasUnknown: boolean,
): HarmonyToken[] {
  if (position < text.length) {
    tokens.push({ type: "text", start: position, end: text.length });
  } else if (hasUnknown && harmonyLiterals.some((literal) => text.endsWith(literal))) {
    tokens.push({ type: "text", start: position, end: position });
  }
  return tokens;
}

function typeOf(literal: string): HarmonyTokenType {
  return literal.slice(2, -2) as HarmonyTokenType;
}

function isPartialLiteral(text: string, start: number): boolean {
  if (text.length - start >= 16) return false;
  const tail = text.slice(start);
  return harmonyLiterals.some((literal) => literal.startsWith(tail));
}
