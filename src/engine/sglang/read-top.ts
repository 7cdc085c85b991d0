import type { TopEntry } from "../http/ragged-lists.ts";
import { ReplyProblem, readTokenId, show } from "../http/reply-reading.ts";

/**
 * Reads `[[logprob, id, text], …]`, best first. Leaves out an entry with probability 0, because JSON cannot express its
 * logprob.
 *
 * @param place - Names the list in messages.
 * @throws ReplyProblem
 */
export function readTop(list: unknown, place: string): readonly TopEntry[] {
  if (!Array.isArray(list)) throw new ReplyProblem(`${place} is ${show(list)}`, "tops");
  const entries: TopEntry[] = [];
  for (const [rank, entry] of (list as unknown[]).entries()) {
    const [logprob, id] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (logprob === null) continue;
    if (typeof logprob !== "number") {
      throw new ReplyProblem(`${place}[${rank}] is ${show(entry)}`, "[logprob, id, text]");
    }
    entries.push({ id: readTokenId(id, `${place}[${rank}][1]`), logprob });
  }
  return entries;
}
