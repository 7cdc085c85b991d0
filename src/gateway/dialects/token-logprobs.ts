import type { ReplyToken } from "../conversation.ts";

/** Logprobs of tokens in the form that Chat Completions and Responses share. */
export function encodeLogprobs(tokens: readonly ReplyToken[]): readonly object[] {
  return tokens.map(({ bytes, logprob }) => {
    // Part of a character has no text of its own: `bytes` says what it is.
    const token = Buffer.from(bytes).toString();
    return { token, logprob, bytes: [...bytes], top_logprobs: [] };
  });
}
