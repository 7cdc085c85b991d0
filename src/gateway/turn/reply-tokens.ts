import { splitStop } from "../../episode/turn/record-turn.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { tokenBytes } from "../../tokenizer/token-bytes.ts";
import type { ReplyToken } from "../conversation.ts";
import { tokensWithin } from "../dialects/tokens-of-texts.ts";
import type { SampledReply } from "./sample-reply.ts";

/**
 * Returns the tokens of a reply's text with their logprobs: reasoning, text and calls, including
 * markup. The token that ends the turn and the tokens after a stop text are left out.
 */
export async function replyTokens(
  renderer: Pick<Renderer, "codec" | "stopTokenIds">,
  { generation, parts, finish }: SampledReply,
): Promise<readonly ReplyToken[]> {
  const { ids } = splitStop(renderer, generation);
  const pieces = await tokenBytes(renderer.codec, ids);
  const tokens = pieces.map((piece, place) => {
    return { bytes: piece, logprob: generation.logprobs[place]! };
  });
  if (finish.type !== "stop-text") return tokens;
  const bytes = Buffer.concat(pieces);
  // The client gets the text before the stop text.
  const said = parts.at(-1)?.type === "text" ? parts.at(-1)!.text : "";
  const end = said + finish.text;
  // The stop text may occur again after the cut, or in markup before the text.
  const isTextAlone = parts.every(({ type }) => type === "text");
  const cut = isTextAlone ? bytes.indexOf(end) : bytes.lastIndexOf(end);
  return cut === -1 ? tokens : tokensUpTo(tokens, cut + Buffer.byteLength(said));
}

/**
 * Counts the sampled tokens that contain a reply's reasoning, without its markup.
 *
 * @param known - The reply's tokens, if they are known.
 */
export async function countReasoningTokens(
  renderer: Pick<Renderer, "codec" | "stopTokenIds">,
  reply: SampledReply,
  known?: readonly ReplyToken[],
): Promise<number> {
  const texts = reply.parts.flatMap(({ type, text }) => (type === "reasoning" ? [text] : []));
  if (texts.length === 0) return 0;
  const tokens = known ?? (await replyTokens(renderer, reply));
  const bytes = Buffer.concat(tokens.map((token) => token.bytes));
  let count = 0;
  let end = 0;
  for (const text of texts) {
    const start = bytes.indexOf(text, end);
    // Characters that the model split wrongly have other bytes in the text.
    if (start === -1) count += (await renderer.codec.encode(text)).length;
    else {
      end = start + Buffer.byteLength(text);
      count += tokensWithin(tokens, start, end).length;
    }
  }
  return count;
}

/** Returns the tokens that start before the offset `end`, in bytes. */
function tokensUpTo(tokens: readonly ReplyToken[], end: number): readonly ReplyToken[] {
  let start = 0;
  return tokens.filter(({ bytes: { length } }) => {
    start += length;
    return start - length < end;
  });
}
