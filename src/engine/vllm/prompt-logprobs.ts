import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { ScorePiece } from "../http/piece-request.ts";
import { encodeTops, type TopEntry } from "../http/ragged-lists.ts";
import {
  ReplyProblem,
  parseObject,
  readList,
  readLogprob,
  readTokenId,
  show,
} from "../http/reply-reading.ts";
import { LOGPROB_FLOOR } from "./piece-reading.ts";
import type { VllmApi } from "./vllm-options.ts";

/**
 * Reads the scores of a prompt's ids from the body of an HTTP 200.
 *
 * The list has an entry for each id of the prompt, and the first entry is `null`. Each entry maps
 * ids to their logprobs and includes the prompt's own id, also if it is not among the most probable ones. The ids-only
 * API has the list beside its choices, the other API in the choice.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py
 * (GenerateResponse), vllm/entrypoints/openai/completion/protocol.py (CompletionResponseChoice) and
 * vllm/logprobs.py.
 *
 * @throws ReplyProblem
 */
export async function readPromptLogprobs(
  text: string,
  { ids, from, topCount, api }: ScorePiece & { api: VllmApi },
): Promise<{ readonly logprobs: readonly number[]; readonly tops?: Uint8Array }> {
  const reply = parseObject(text);
  const [choice] = readList(reply, "choices");
  const [parent, place]: [JsonObject, string] =
    api === "generate" ? [reply, ""] : [isObject(choice) ? choice : {}, "choices[0]."];
  const entries = readList(parent, "prompt_logprobs", place);
  if (entries.length !== ids.length) {
    throw new ReplyProblem(
      `${place}prompt_logprobs has ${entries.length} entries`,
      `${ids.length}, one for each id of the prompt`,
    );
  }
  const scored = entries.slice(from);
  const placeOf = (row: number): string => `${place}prompt_logprobs[${from + row}]`;
  const logprobs = scored.map((entry, row) => readEntry(entry, ids[from + row]!, placeOf(row)));
  if (topCount === undefined) return { logprobs };
  const tops = await encodeTops(scored, (entry, row) =>
    readTop(entry as JsonObject, { count: topCount, id: ids[from + row]!, place: placeOf(row) }),
  );
  return { logprobs, tops };
}

/**
 * Reads the most probable ids at the position of an id, best first. The server's entry has one id more if the
 * position's own id is not among them.
 *
 * @throws ReplyProblem
 */
function readTop(
  entry: JsonObject,
  { count, id: ownId, place }: { count: number; id: number; place: string },
): readonly TopEntry[] {
  const entries: TopEntry[] = [];
  for (const [name, value] of Object.entries(entry)) {
    const { logprob } = isObject(value) ? value : {};
    if (typeof logprob !== "number") {
      throw new ReplyProblem(`${place}.${name} is ${show(value)}`, "a token's logprob");
    }
    if (logprob > LOGPROB_FLOOR) entries.push({ id: readTokenId(Number(name), place), logprob });
  }
  entries.sort((a, b) => b.logprob - a.logprob);
  const tops = entries.length > count ? entries.filter(({ id }) => id !== ownId) : entries;
  if (tops.length <= count) return tops;
  throw new ReplyProblem(`${place} has ${entries.length} ids`, `at most ${count + 1}`);
}

function readEntry(entry: unknown, id: number, place: string): number {
  const named = isObject(entry) ? entry[id] : undefined;
  if (!isObject(named)) {
    throw new ReplyProblem(`${place} is ${show(entry)}`, `an object with the id ${id}`);
  }
  const { logprob } = named;
  return readLogprob(logprob, { place: `${place}.${id}.logprob`, id, floor: LOGPROB_FLOOR });
}
