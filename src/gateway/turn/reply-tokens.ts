import { splitStop } from "../../episode/turn/record-turn.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { tokenBytes } from "../../tokenizer/token-bytes.ts";
import type { ReplyToken } from "../conversation.ts";
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

/** Returns the tokens that start before the offset `end`, in bytes. */
function tokensUpTo(tokens: readonly ReplyToken[], end: number): readonly ReplyToken[] {
  let start = 0;
  return tokens.filter(({ bytes: { length } }) => {
    start += length;
    return start - length < end;
  });
}
