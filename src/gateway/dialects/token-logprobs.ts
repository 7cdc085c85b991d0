import type { ReplyToken } from "../conversation.ts";

/** Encodes logprobs in the form that Chat Completions and Responses share. */
export function encodeLogprobs(tokens: readonly ReplyToken[]): readonly object[] {
  return tokens.map(({ bytes, logprob }) => {
    // A part of a character decodes to U+FFFD; `bytes` has its exact value.
    const token = Buffer.from(bytes).toString();
    return { token, logprob, bytes: [...bytes], top_logprobs: [] };
  });
}
