import type { ScoreReply } from "../http/piece-reply.ts";
import type { ScorePiece } from "../http/piece-request.ts";
import { encodeTops } from "../http/ragged-lists.ts";
import {
  ReplyProblem,
  parseObject,
  readList,
  readLogprob,
  readObject,
  readPromptCount,
  readTokenId,
  show,
} from "../http/reply-reading.ts";
import { readEngineFailure } from "./generate-reply.ts";
import { readTop } from "./read-top.ts";

/** The id that the engine writes for the vocabulary's last id. */
const CLIPPED_ID = 0;

const PLACE = "meta_info.input_token_logprobs";
const topPlace = "meta_info.input_top_logprobs";

/**
 * Reads the body of an HTTP 200 of a `/generate` that scores.
 *
 * The list has an entry for each id, starting one before the first scored id. The first entry's logprob is always
 * `null`. The ids in the entries must be those that were sent; the vocabulary's last id comes back as 0. The list of
 * the most probable ids has the same length, and its first entry is also `null`.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/scheduler_components/logprob_result_processor.py.
 *
 * @throws ReplyProblem
 */
export async function readScoreReply(
  text: string,
  { ids, from, topCount }: ScorePiece,
): Promise<ScoreReply> {
  const reply = parseObject(text);
  const meta = readObject(reply, "meta_info");
  const reason = readObject(meta, "finish_reason", "meta_info.");
  const failed = readEngineFailure(reply, meta, reason);
  if (failed !== undefined) return failed;
  if (reason["type"] === "abort") {
    const { message } = reason;
    return { type: "interrupted", message: typeof message === "string" ? message : "" };
  }
  readPromptCount(meta, "prompt_tokens", { place: "meta_info.", sent: ids });
  const entries = readList(meta, "input_token_logprobs", "meta_info.");
  const expectedCount = ids.length - from + 1;
  if (entries.length !== expectedCount) {
    throw new ReplyProblem(
      `${PLACE} has ${entries.length} entries`,
      `${expectedCount}, one for each id from ${from - 1} on`,
    );
  }
  const logprobs = entries
    .slice(1)
    .map((entry, index) => readEntry(entry, ids[from + index]!, `${PLACE}[${index + 1}]`));
  if (topCount === undefined) return { type: "scored", logprobs };
  const lists = readList(meta, "input_top_logprobs", "meta_info.");
  if (lists.length !== expectedCount) {
    const problem = `${topPlace} has ${lists.length} entries`;
    throw new ReplyProblem(problem, `${expectedCount}, as many as there are logprobs`);
  }
  const tops = await encodeTops(lists.slice(1), (list, row) =>
    readTop(list, `${topPlace}[${row + 1}]`),
  );
  return { type: "scored", logprobs, tops };
}

function readEntry(entry: unknown, sentId: number, place: string): number {
  if (!Array.isArray(entry)) {
    throw new ReplyProblem(`${place} is ${show(entry)}`, "[logprob, id, text]");
  }
  const [logprob, named] = entry as unknown[];
  const id = readTokenId(named, `${place}[1]`);
  if (id !== sentId && id !== CLIPPED_ID) {
    throw new ReplyProblem(`${place}[1] is ${id}`, `${sentId}, as it was sent`);
  }
  return readLogprob(logprob, { place: `${place}[0]`, id: sentId });
}
