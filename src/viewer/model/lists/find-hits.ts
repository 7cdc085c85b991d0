import type { EpisodeRow } from "../../../run/folder/episode-row.ts";
import { foldCase } from "../fold-case.ts";

/** The parts of an episode that a search reads: those that the page shows as its conversation. */
type Conversation = Pick<EpisodeRow, "messages" | "turns">;

/** Returns the positions of a text within another text. Letter case does not count. */
export function findHits(text: string, wanted: string): readonly number[] {
  if (wanted === "") return [];
  const [folded, needle] = [foldCase(text), foldCase(wanted)];
  const places: number[] = [];
  for (let at = folded.indexOf(needle); at >= 0; at = folded.indexOf(needle, at + needle.length)) {
    places.push(at);
  }
  return places;
}

/** Counts a text in a conversation: in its opening, the turns with their reasoning, and the answers. */
export function countHits(conversation: Conversation, wanted: string): number {
  let count = 0;
  for (const text of conversationTexts(conversation)) count += findHits(text, wanted).length;
  return count;
}

/** Returns the messages before the first turn. */
export function openingMessages({ messages }: Pick<Conversation, "messages">) {
  const first = messages.findIndex(({ role }) => role === "assistant");
  return first < 0 ? messages : messages.slice(0, first);
}

function* conversationTexts({ messages, turns }: Conversation): Generator<string> {
  for (const { content } of openingMessages({ messages })) yield content;
  for (const { reasoning = "", text, steps } of turns) {
    yield reasoning;
    yield text;
    for (const { observation } of steps) yield observation;
  }
}
