import type { TokenCodec } from "../../tokenizer/codec.ts";
import { tokenBytes } from "../../tokenizer/token-bytes.ts";
import type { ReplyToken } from "../conversation.ts";
import type { SampledReply } from "./sample-reply.ts";

/**
 * The tokens of a reply's text one by one, for clients that want their logprobs: what was thought, said and
 * called, with the markup. The token that ends the turn is no text, and neither is what follows the
 * stop text at which the reply was cut.
 */
export async function replyTokens(
  { codec, stopTokenIds }: { readonly codec: TokenCodec; readonly stopTokenIds: readonly number[] },
  { generation: { outputIds, logprobs }, parts, finish }: SampledReply,
): Promise<readonly ReplyToken[]> {
  const last = outputIds.at(-1);
  const isEnded = last !== undefined && stopTokenIds.includes(last);
  const ids = isEnded ? outputIds.slice(0, -1) : outputIds;
  const pieces = await tokenBytes(codec, ids);
  const tokens = pieces.map((bytes, place) => ({ bytes, logprob: logprobs[place]! }));
  if (finish.type !== "stop-text") return tokens;
  const whole = Buffer.concat(pieces);
  // What was said before the stop text goes to the client; the rest does not.
  const said = parts.at(-1)?.type === "text" ? parts.at(-1)!.text : "";
  const end = said + finish.text;
  // What was sampled after the stop text may hold it again, and markup before the text may hold it too.
  const isTextAlone = parts.every(({ type }) => type === "text");
  const cut = isTextAlone ? whole.indexOf(end) : whole.lastIndexOf(end);
  return cut === -1 ? tokens : tokensUpTo(tokens, cut + Buffer.byteLength(said));
}

/** The tokens that begin before so many bytes. */
function tokensUpTo(tokens: readonly ReplyToken[], end: number): readonly ReplyToken[] {
  let start = 0;
  return tokens.filter(({ bytes: { length } }) => {
    start += length;
    return start - length < end;
  });
}
