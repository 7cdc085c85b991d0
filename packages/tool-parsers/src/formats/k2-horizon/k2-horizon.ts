import { pythonLstrip, pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { entryStarts } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { readK2Block, type K2Call } from "./k2-horizon-block.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmK2Horizon } from "./vllm-k2-horizon.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import {
  findClosed,
  divideSpan,
  outsideTags,
  betweenTags,
} from "../../shared/tags/between-tags.ts";

const groupOpen = "<ifm|tool_calls>";
const groupClose = "</ifm|tool_calls>";
const open = "<ifm|tool_call>";
const close = "</ifm|tool_call>";
const thinkNames = ["think", "think_fast", "think_faster"];

/**
 * SGLang's detector for K2 Horizon. Reasoning at the start is excluded. A malformed part of a group
 * returns the complete group as text; without a group, only the malformed block is returned.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/k2_v3_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  if (!text.includes(open)) return { normalText: text, calls: [] };
  const reasoningEnd = endOfReasoning(text);
  const reasoning = text.slice(0, reasoningEnd);
  const working = text.slice(reasoningEnd);
  const groupStart = working.indexOf(groupOpen);
  const bodyStart = groupStart + groupOpen.length;
  const groupEnd = groupStart === -1 ? -1 : working.indexOf(groupClose, bodyStart);
  if (groupEnd !== -1) {
    const calls = readGroup(working.slice(bodyStart, groupEnd), context);
    if (calls === undefined) return { normalText: text, calls: [] };
    const after = working.slice(groupEnd + groupClose.length);
    return {
      normalText: reasoning + working.slice(0, groupStart) + after,
      calls: toCompat(calls, context, 0),
    };
  }
  return detectLoose(reasoning, working, context);
}

/** Reads calls without a closed group. */
function detectLoose(reasoning: string, working: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  let position = 0;
  for (const { inner, start, end } of findClosed(working, open, close)) {
    normal.push(working.slice(position, start));
    const found = readCalls(inner, context);
    position = end;
    if (found === undefined) normal.push(working.slice(start, position));
    else calls.push(...toCompat(found, context, calls.length));
  }
  const outside = normal.join("") + working.slice(position);
  const normalText = outside.replaceAll(groupOpen, "").replaceAll(groupClose, "");
  return { normalText: reasoning + normalText, calls };
}

/**
 * The end of reasoning at the start of the text; the end of the text if the reasoning is not
 * closed.
 */
function endOfReasoning(text: string): number {
  let position = 0;
  for (;;) {
    const rest = text.slice(position);
    const stripped = pythonLstrip(rest);
    if (stripped === "") return position === 0 && text === "" ? 0 : text.length;
    const name = thinkNames.find((candidate) => stripped.startsWith(`<ifm|${candidate}>`));
    if (name === undefined) {
      const isCut = thinkNames.some((candidate) => `<ifm|${candidate}>`.startsWith(stripped));
      return isCut ? text.length : position;
    }
    const start = `<ifm|${name}>`;
    const end = stripped.indexOf(`</ifm|${name}>`, start.length);
    if (end === -1) return text.length;
    position += rest.length - stripped.length + end + start.length + 1;
  }
}

/** Reads the calls of a group; `undefined` if the group has no calls or contains anything else. */
function readGroup(text: string, context: ParseContext): readonly K2Call[] | undefined {
  if (pythonStrip(outsideTags(text, open, close)) !== "") return undefined;
  const calls = betweenTags(text, open, close).map((block) => readCalls(block, context));
  if (calls.length === 0 || calls.includes(undefined)) return undefined;
  const found = calls.flatMap((each) => each ?? []);
  return found.length === 0 ? undefined : found;
}

function readCalls(block: string, context: ParseContext): readonly K2Call[] | undefined {
  return catchPython(() => readK2Block(block, context), "ValueError", "TypeError");
}

function toCompat(
  calls: readonly K2Call[],
  context: ParseContext,
  firstIndex: number,
): CompatCall[] {
  return calls
    .filter(({ name }) => context.toolPositions.has(name) || forwardsUnknown(context))
    .map(({ name, values }, index) => ({
      name,
      argumentsText: writeJson(values),
      toolIndex: firstIndex + index,
    }));
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const calls = catchPython(() => readK2Block(inner, context));
  if (calls === undefined || calls.length === 0) {
    return [{ span, problem: malformed("expected a name and tagged arguments, or JSON") }];
  }
  if (calls.length === 1) return calls.map((call) => toBlock(span, call));
  const starts = entryStarts(inner).map((start) => innerStart + start);
  return divideSpan(span, starts).map((part, index) => toBlock(part, calls[index] as K2Call));
}

function toBlock(span: Block["span"], { name, values }: K2Call): Block {
  return { span, name, argumentValue: values };
}

/** K2 Horizon: blocks of tagged arguments or of JSON, in a group. */
export const k2Horizon = defineParser({
  name: "k2_horizon",
  closers: /<\/?ifm\|tool_calls>/g,
  readings: {
    sglang: sglangReading({
      release: { stops: ["<ifm|", "</ifm|"] },
      hasToolCall: (text) => text.includes(open),
      detect,
    }),
    vllm: vllmK2Horizon,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:[[{]|[^\s<]*\s*(?:<ifm|$))/,
    read: readBlocks,
  },
});
