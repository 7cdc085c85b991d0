import type { MalformedToken } from "../../src/testing/index.ts";

type Json = Record<string, unknown>;

/**
 * Changes a reply of one kind of server so that a token, or a score, has this fault. `index` is the
 * token's, by default 1; absent members of the reply are ignored.
 */
export type MalformReply = (reply: Json, token: MalformedToken, index?: number) => unknown;

/** SGLang's `/generate`: `[logprob, id, text]` for each token, and the ids once more. */
export function malformSglangReply(reply: Json, token: MalformedToken, index = 1): unknown {
  const { output_ids: ids, meta_info: meta } = reply as {
    output_ids: unknown[];
    meta_info: Json;
  };
  const malform = ([logprob, id, text]: unknown[]): unknown[] =>
    "id" in token ? [logprob, token.id, text] : [said(token), id, text];
  const scored = meta["input_token_logprobs"] as unknown[][] | undefined;
  if (scored !== undefined && scored.length > 0) {
    return { ...reply, meta_info: { ...meta, input_token_logprobs: changeAt(scored, 2, malform) } };
  }
  const entries = meta["output_token_logprobs"] as unknown[][];
  return {
    ...reply,
    output_ids: "id" in token ? changeAt(ids, index, () => token.id) : ids,
    meta_info: { ...meta, output_token_logprobs: changeAt(entries, index, malform) },
  };
}

/** Both of vLLM's ways to answer: an object for each token, or columns. */
export function malformVllmReply(reply: Json, token: MalformedToken, index = 1): unknown {
  const [choice] = reply["choices"] as Json[];
  // A stream ends with one that has no tokens.
  if (choice === undefined) return reply;
  const malformScores = (scores: unknown): unknown =>
    changeAt(scores as Json[], 2, (entry) => {
      const [[id, named]] = Object.entries(entry ?? {}) as [[string, Json]];
      return { [id]: { ...named, logprob: "id" in token ? -1 : said(token) } };
    });
  if (Array.isArray(reply["prompt_logprobs"])) {
    return { ...reply, prompt_logprobs: malformScores(reply["prompt_logprobs"]) };
  }
  if (Array.isArray(choice["prompt_logprobs"])) {
    const prompt_logprobs = malformScores(choice["prompt_logprobs"]);
    return { ...reply, choices: [{ ...choice, prompt_logprobs }] };
  }
  const logprobs = choice["logprobs"] as Json;
  const token_ids =
    "id" in token
      ? changeAt(choice["token_ids"] as unknown[], index, () => token.id)
      : choice["token_ids"];
  return {
    ...reply,
    choices: [{ ...choice, token_ids, logprobs: malformVllmLogprobs(logprobs, token, index) }],
  };
}

function malformVllmLogprobs(
  { content, ...columns }: Json,
  token: MalformedToken,
  index: number,
): Json {
  if (Array.isArray(content)) {
    const malform = (entry: Json): Json =>
      "id" in token
        ? { ...entry, token: `token_id:${token.id}` }
        : { ...entry, logprob: said(token) };
    return { content: changeAt(content as Json[], index, malform) };
  }
  const { tokens, token_logprobs: logprobs } = columns as Record<string, unknown[]>;
  return "id" in token
    ? { ...columns, tokens: changeAt(tokens!, index, () => `token_id:${token.id}`) }
    : { ...columns, token_logprobs: changeAt(logprobs!, index, () => said(token)) };
}

/** llama.cpp's `/completion`: the ids, and an object for each that has a probability. */
export function malformLlamaCppReply(reply: Json, token: MalformedToken): unknown {
  const { tokens, completion_probabilities: entries } = reply as {
    tokens: unknown[];
    completion_probabilities: Json[];
  };
  return {
    ...reply,
    tokens: "id" in token ? changeAt(tokens, 1, () => token.id) : tokens,
    completion_probabilities: changeAt(entries, 1, (entry) =>
      "id" in token ? { ...entry, id: token.id } : { ...entry, logprob: said(token) },
    ),
  };
}

/** Copied through JSON, which drops undefined members. */
function said({ logprob }: Exclude<MalformedToken, { id: number }>): number | null | undefined {
  return logprob === "missing" ? undefined : logprob;
}

function changeAt<Item>(
  list: readonly Item[],
  index: number,
  change: (item: Item) => unknown,
): unknown[] {
  return list.map((item, at) => (at === index ? change(item) : item));
}
