import { pythonLower, pythonStrip } from "../../../../python-values/src/index.ts";
import { holdBackLength } from "../../hold-back.ts";
import type { HarmonyEvent } from "./harmony-event.ts";
import { parseHarmonyProse, soundsLikeHarmonyProse } from "./harmony-prose.ts";
import { harmonyLiterals, tokenizeHarmony, type HarmonyToken } from "./harmony-tokens.ts";

/**
 * Reads a complete turn in the Harmony format of gpt-oss. Analysis is reasoning, commentary that
 * ends in `<|call|>` is a tool call, and the rest is normal text. Text without markers that
 * mentions `analysis` or `assistantfinal` is read as Harmony whose markers were lost. Other text
 * without markers is not reported.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/harmony_parser.py`.
 */
export function parseHarmony(text: string): HarmonyEvent[] {
  if (text.includes("<|channel|>") || text.includes("<|start|>")) {
    return dropFiller(parseCanonical(text), pythonStrip(text).endsWith("<|call|>"));
  }
  if (!soundsLikeHarmonyProse(text)) return [];
  return dropFiller(parseHarmonyProse(text), pythonStrip(text).endsWith("<|call|>"));
}

/** Drops text after a call that is `commentary` or the beginning of that word. */
function dropFiller(events: readonly HarmonyEvent[], endsInCall: boolean): HarmonyEvent[] {
  const filler = "commentary";
  let afterCall = false;
  let partial = "";
  return events.filter((event) => {
    if (event.type === "normal") {
      const spelled = partial + pythonLower(pythonStrip(event.content));
      const filters = afterCall || partial !== "";
      if (filters && filler.startsWith(spelled)) {
        partial = spelled === filler ? "" : spelled;
        afterCall &&= spelled !== filler;
        return false;
      }
      if (filters) afterCall = false;
      partial = "";
    }
    if (event.type === "tool-call") partial = "";
    if (event.type === "tool-call" || endsInCall) afterCall = true;
    return true;
  });
}

interface Reader {
  readonly text: string;
  readonly tokens: readonly HarmonyToken[];
}

function parseCanonical(text: string): HarmonyEvent[] {
  const reader: Reader = { text, tokens: tokenizeHarmony(text) };
  const { tokens } = reader;
  const events: HarmonyEvent[] = [];
  let index = 0;
  while (index < tokens.length) {
    const token = tokens[index] as HarmonyToken;
    if (token.type === "start" || token.type === "channel") {
      const block = readBlock(reader, index);
      if (block === undefined) return [...events, ...readPartialAnalysis(reader, index)];
      events.push(block.event);
      index = block.next;
      continue;
    }
    const content = text.slice(token.start, token.end);
    if (token.type === "text" && index === tokens.length - 1) {
      const emitted = content.slice(0, content.length - holdBackLength(content, harmonyLiterals));
      return emitted === "" ? events : [...events, { type: "normal", content: emitted }];
    }
    const isMarker = harmonyLiterals.includes(pythonStrip(content));
    if (!isFiller(reader, index) && !isMarker) events.push({ type: "normal", content });
    index += 1;
  }
  return events;
}

/** True if a token after `<|call|>` is noise: the word `commentary`, or a message marker. */
function isFiller({ text, tokens }: Reader, index: number): boolean {
  const token = tokens[index] as HarmonyToken;
  if (tokens[index - 1]?.type !== "call") return false;
  if (token.type === "message") return true;
  const isWord = pythonLower(pythonStrip(text.slice(token.start, token.end))) === "commentary";
  return isWord && (token.type === "text" || tokens[index + 1]?.type === "channel");
}

/** Finds the header of a block: its first channel and message markers. */
function findHeader(
  { tokens }: Reader,
  start: number,
): { channel: number | undefined; message: number | undefined } {
  let channel: number | undefined;
  for (let index = tokens[start]?.type === "start" ? start + 1 : start; ; index++) {
    const type = tokens[index]?.type;
    if (type === undefined) return { channel, message: undefined };
    if (type === "channel") channel ??= index;
    else if (type === "message") return { channel, message: index };
  }
}

type Channel = "analysis" | "commentary" | "final";

function channelOf(
  { text, tokens }: Reader,
  channel: number,
  message: number,
): Channel | undefined {
  const start = tokens[channel + 1]?.start ?? tokens[channel]?.end;
  const header = pythonLower(pythonStrip(text.slice(start, tokens[message]?.start)));
  return (["analysis", "commentary", "final"] as const).find((name) => header.startsWith(name));
}

/** Reads the block that starts here; `undefined` if it is incomplete. */
function readBlock(
  reader: Reader,
  start: number,
): { event: HarmonyEvent; next: number } | undefined {
  const { text, tokens } = reader;
  const { channel, message } = findHeader(reader, start);
  if (message === undefined) return undefined;
  const contentStart = tokens[message]?.end ?? 0;
  const kind = channel === undefined ? undefined : channelOf(reader, channel, message);
  if (channel !== undefined && kind === undefined) return undefined;
  const closers = closersOf(kind);
  let end = message + 1;
  while (end < tokens.length && !closers.includes(tokens[end]?.type ?? "")) end += 1;
  const closer = tokens[end];
  if (closer === undefined) {
    // Only a final answer may end with the text.
    return kind === "final"
      ? { event: { type: "normal", content: text.slice(contentStart) }, next: end }
      : undefined;
  }
  const content = text.slice(contentStart, closer.start);
  if (closer.type === "call" && (kind === "analysis" || kind === "commentary")) {
    const raw = text.slice(tokens[start]?.start, closer.end);
    return { event: { type: "tool-call", content: pythonStrip(content), raw }, next: end + 1 };
  }
  if (kind === "analysis") return { event: { type: "reasoning", content }, next: end + 1 };
  const trailing = tokens[end + 1];
  if (kind === "final" && trailing?.type === "text") {
    const rest = text.slice(trailing.start, trailing.end);
    return { event: { type: "normal", content: content + rest }, next: end + 2 };
  }
  return { event: { type: "normal", content }, next: end + 1 };
}

function closersOf(kind: Channel | undefined): readonly string[] {
  if (kind === "final") return ["return"];
  return kind === undefined ? ["end", "call", "return"] : ["end", "call"];
}

/** Reads analysis that is not closed, which is reasoning as well. */
function readPartialAnalysis(reader: Reader, start: number): HarmonyEvent[] {
  const { channel, message } = findHeader(reader, start);
  if (channel === undefined || message === undefined) return [];
  if (channelOf(reader, channel, message) !== "analysis") return [];
  return [{ type: "reasoning", content: reader.text.slice(reader.tokens[message]?.end) }];
}
