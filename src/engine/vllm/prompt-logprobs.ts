import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { ScorePiece } from "../http/piece-request.ts";
import { ReplyProblem, parseObject, readList, readLogprob, show } from "../http/reply-reading.ts";
import { LOGPROB_FLOOR } from "./piece-reading.ts";
import type { VllmApi } from "./vllm-options.ts";

/**
 * Reads the scores of a prompt's ids from the body of an HTTP 200.
 *
 * The list has an entry for each id of the prompt, and the first entry is `null`. Each entry maps
 * ids to their logprobs and includes the prompt's own id. The ids-only API has the list beside its
 * choices, the other API in the choice.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py
 * (GenerateResponse), vllm/entrypoints/openai/completion/protocol.py (CompletionResponseChoice) and
 * vllm/logprobs.py.
 *
 * @throws ReplyProblem
 */
export function readPromptLogprobs(
  text: string,
  { ids, from, api }: Pick<ScorePiece, "ids" | "from"> & { api: VllmApi },
): readonly number[] {
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
  return entries
    .slice(from)
    .map((entry, index) =>
      readEntry(entry, ids[from + index]!, `${place}prompt_logprobs[${from + index}]`),
    );
}

function readEntry(entry: unknown, id: number, place: string): number {
  const named = isObject(entry) ? entry[id] : undefined;
  if (!isObject(named)) {
    throw new ReplyProblem(`${place} is ${show(entry)}`, `an object with the id ${id}`);
  }
  const { logprob } = named;
  return readLogprob(logprob, { place: `${place}.${id}.logprob`, id, floor: LOGPROB_FLOOR });
}
