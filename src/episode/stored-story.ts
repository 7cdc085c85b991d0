import type { Message } from "../message.ts";
import { isObject } from "../values/is-object.ts";
import type { EpisodeStory, TurnRecord, TurnStep } from "./episode.ts";

/**
 * A part of a text: the text itself, or a reference to the content or reasoning of a message, by the message's index.
 */
type StoredPart = string | { readonly contentOf: number } | { readonly reasoningOf: number };

/** A text of a turn. If messages have long parts of it, it is a list of parts, which are joined. */
export type StoredText = string | readonly StoredPart[];

/** A turn as `episodes.jsonl` has it. JSON-able. */
export interface StoredTurn extends Omit<TurnRecord, "text" | "reasoning" | "steps"> {
  readonly text: StoredText;
  readonly reasoning?: StoredText;
  readonly steps: readonly (Omit<TurnStep, "observation"> & { readonly observation: StoredText })[];
}

/**
 * A story as `episodes.jsonl` has it. Texts of turns that its messages also have are stored once, in the messages.
 * JSON-able.
 */
export type StoredStory<Story> = Omit<Story, "turns"> & { readonly turns: readonly StoredTurn[] };

/** The least length of a text that is replaced, in UTF-16 units. A reference takes about 20. */
const leastLength = 64;

/** The number of following assistant messages that are searched for the texts of a turn. */
const messagesAhead = 4;

/** A long text of a message. */
interface Known {
  readonly text: string;
  readonly part: StoredPart;
}

/** Replaces long texts of turns by references to the messages that have them. `restoreStory()` is the inverse. */
export function storeStory<Story extends Pick<EpisodeStory, "messages" | "turns">>(
  story: Story,
): StoredStory<Story> {
  const { messages, turns } = story;
  const contents = new Map(
    messages.flatMap(({ content }, index) =>
      content.length < leastLength ? [] : [[content, index] as const],
    ),
  );
  const answers = messages.flatMap(toAnswer);
  let next = 0;
  const answerOf = (text: string): readonly Known[] => {
    const ahead = answers.slice(next, next + messagesAhead);
    const found = ahead.findIndex((known) => known.some((one) => text.includes(one.text)));
    next += found + 1;
    return ahead[found] ?? [];
  };
  return {
    ...story,
    turns: turns.map((turn) => {
      const known = answerOf(turn.text);
      return {
        ...turn,
        text: toParts(turn.text, known),
        ...(turn.reasoning !== undefined && { reasoning: toParts(turn.reasoning, known) }),
        steps: turn.steps.map((step) => {
          const index = contents.get(step.observation);
          return index === undefined ? step : { ...step, observation: [{ contentOf: index }] };
        }),
      };
    }),
  };
}

/** Returns the long texts of an assistant message, in the order in which they are sampled. */
function toAnswer(message: Message, index: number): readonly (readonly Known[])[] {
  if (message.role !== "assistant") return [];
  const { content, reasoning = "" } = message;
  const known = [
    { text: reasoning, part: { reasoningOf: index } },
    { text: content, part: { contentOf: index } },
  ].filter(({ text }) => text.length >= leastLength);
  return known.length === 0 ? [] : [known];
}

/** Replaces the known texts in a text, in their order. */
function toParts(text: string, known: readonly Known[]): StoredText {
  const parts: StoredPart[] = [];
  let end = 0;
  for (const { text: part, part: reference } of known) {
    const start = text.indexOf(part, end);
    if (start < 0) continue;
    if (start > end) parts.push(text.slice(end, start));
    parts.push(reference);
    end = start + part.length;
  }
  if (parts.length === 0) return text;
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/**
 * Restores the texts in a parsed line of `episodes.jsonl`. Leaves a text with wrong parts as it is, and changes nothing
 * in a line that is no episode.
 */
export function restoreStory(row: unknown): unknown {
  if (!isObject(row)) return row;
  const { messages, turns } = row;
  if (!Array.isArray(messages) || !Array.isArray(turns)) return row;
  const restore = (text: unknown): unknown => joinParts(text, messages) ?? text;
  const restoreStep = (step: unknown): unknown =>
    isObject(step) && Array.isArray(step["observation"])
      ? { ...step, observation: restore(step["observation"]) }
      : step;
  const restoreTurn = (turn: unknown): unknown => {
    if (!isObject(turn)) return turn;
    const { text, reasoning, steps } = turn;
    return {
      ...turn,
      ...(Array.isArray(text) && { text: restore(text) }),
      ...(Array.isArray(reasoning) && { reasoning: restore(reasoning) }),
      ...(Array.isArray(steps) && { steps: steps.map(restoreStep) }),
    };
  };
  return { ...row, turns: turns.map(restoreTurn) };
}

/** Joins the parts of a text; returns `undefined` if they are not such parts. */
function joinParts(parts: unknown, messages: readonly unknown[]): string | undefined {
  if (!Array.isArray(parts) || parts.length === 0) return undefined;
  let joined = "";
  for (const part of parts as readonly unknown[]) {
    const text = typeof part === "string" ? part : textOf(part, messages);
    if (typeof text !== "string") return undefined;
    joined += text;
  }
  return joined;
}

function textOf(part: unknown, messages: readonly unknown[]): unknown {
  if (!isObject(part)) return undefined;
  const { contentOf, reasoningOf } = part;
  const message = messages[(contentOf ?? reasoningOf) as number];
  if (!isObject(message)) return undefined;
  return message[contentOf === undefined ? "reasoning" : "content"];
}
