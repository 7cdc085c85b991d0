import { parsePythonJson, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { parseHarmony } from "./harmony.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonPattern } from "../../shared/text/python-pattern.ts";
import { malformed, unclosed, invalidJson } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const marker = "<|start|>assistant<|channel|>commentary";
const callEnd = "<|call|>";
const headPattern = pythonPattern(
  String.raw`to=([a-zA-Z_][a-zA-Z0-9_.-]*)\s*<\|constrain\|>json<\|message\|>`,
  "",
);

/**
 * SGLang's detector for gpt-oss. Calls need the complete header with the constraint; analysis is
 * dropped.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gpt_oss_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  if (!text.includes(marker)) return { normalText: text, calls: [] };
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  for (const event of parseHarmony(text)) {
    if (event.type === "normal") normal.push(event.content);
    if (event.type !== "tool-call") continue;
    const call = readCall(event.raw ?? event.content, context, calls.length);
    if (call !== undefined) calls.push(call);
  }
  return { normalText: pythonStrip(normal.join(" ")), calls };
}

function readCall(raw: string, context: ParseContext, toolIndex: number): CompatCall | undefined {
  const head = headPattern.exec(raw);
  if (head === null) return undefined;
  const name = (head[1] ?? "").split(".").at(-1) ?? "";
  if (!context.toolPositions.has(name) && !forwardsUnknown(context)) return undefined;
  const jsonStart = head.index + head[0].length;
  const end = raw.indexOf(callEnd, jsonStart);
  const json = raw.slice(jsonStart, end === -1 ? raw.length : end);
  const value =
    pythonStrip(json) === ""
      ? new Map<string, PyValue>()
      : catchPython(() => parsePythonJson(json), "JSONDecodeError");
  if (value === undefined) return undefined;
  return { name, argumentsText: writeJson(value), toolIndex };
}

/** The header of a message to a tool. */
interface CallHead {
  readonly start: number;
  /** The start of the message. */
  readonly end: number;
  readonly recipient: string;
  readonly constraint: string | undefined;
}

/** The headers with a recipient, in order. */
function findHeads(text: string): CallHead[] {
  const tokens = [...text.matchAll(/<\|(start|channel|constrain|message|end|call|return)\|>/g)].map(
    ({ 0: literal, 1: type, index }) => ({ type, start: index, end: index + literal.length }),
  );
  return tokens.flatMap((message, index) => {
    if (message.type !== "message") return [];
    const isConstrained = tokens[index - 1]?.type === "constrain";
    const channelIndex = isConstrained ? index - 2 : index - 1;
    const channel = tokens[channelIndex];
    if (channel?.type !== "channel") return [];
    // The first header may lack its beginning, which is then the end of the prompt.
    const before = tokens[channelIndex - 1] ?? { type: "start", start: 0, end: 0 };
    const role = before.type === "start" ? text.slice(before.end, channel.start) : "";
    const channelText = text.slice(channel.end, tokens[channelIndex + 1]?.start);
    const isRoles = recipientOf(channelText) === undefined && recipientOf(role) !== undefined;
    const recipient = recipientOf(isRoles ? role : channelText);
    if (recipient === undefined) return [];
    const hasStart = before.type === "start" && (before.end > 0 || isRoles);
    const constraint = isConstrained ? tokens[index - 1] : undefined;
    return [
      {
        start: hasStart ? before.start : channel.start,
        end: message.end,
        recipient,
        constraint: constraint && text.slice(constraint.end, message.start),
      },
    ];
  });
}

/**
 * The recipient of a header. Models write it with the channel, or with the role before the channel.
 */
function recipientOf(header: string): string | undefined {
  return /\bto=([^\s<]+)/.exec(header)?.[1];
}

function findBlocks(text: string): Block[] {
  const heads = findHeads(text);
  const ends = indexesOf(text, callEnd);
  let endIndex = 0;
  return heads.map((head, index) => {
    const next = heads[index + 1]?.start ?? text.length;
    while ((ends[endIndex] ?? Infinity) < head.end) endIndex += 1;
    const end = ends[endIndex];
    const closed = end !== undefined && end < next;
    const span = [head.start, closed ? end + callEnd.length : next] as const;
    const name = head.recipient.split(".").at(-1) ?? "";
    if (!closed) return { span, name, problem: unclosed(callEnd) };
    return readBlock({ span, name }, text.slice(head.end, end), checkHead(text, head));
  });
}

function checkHead(text: string, { start, constraint }: CallHead): Block["problem"] {
  if (!text.startsWith(marker, start)) return malformed(`expected ${marker}`);
  return constraint === "json" ? undefined : malformed("expected <|constrain|>json");
}

function readBlock(
  base: Pick<Block, "span"> & { readonly name: string },
  text: string,
  problem: Block["problem"],
): Block {
  const json = text.trim() === "" ? undefined : readJson(text);
  if (json?.type === "problem") {
    return { ...base, problem: invalidJson(json.detail) };
  }
  const argumentValue = json === undefined ? new Map<string, PyValue>() : json.value;
  return { ...base, argumentValue, ...(problem !== undefined && { problem }) };
}

/** gpt-oss: calls in the commentary channel of the Harmony format. */
export const gptOss = defineParser({
  name: "gpt-oss",
  markers: ["<|channel|>commentary"],
  closingStops: [callEnd],
  readings: {
    sglang: sglangReading({
      release: { stops: ["<|"], strips: true },
      hasToolCall: (text) => text.includes(marker),
      detect,
    }),
  },
  findBlocks,
});
