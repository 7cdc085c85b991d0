import { byVersion, vllmReading, type VllmCall } from "../../vllm/vllm-reading.ts";

const sectionOpen = "<｜tool▁calls▁begin｜>";
const sectionClose = "<｜tool▁calls▁end｜>";
const open = "<｜tool▁call▁begin｜>";
const close = "<｜tool▁call▁end｜>";
const separator = "<｜tool▁sep｜>";
const fence = "```json\n";

/** A call, and its end in the text. */
interface FoundCall extends VllmCall {
  /** The text before the name. vLLM accepts `function` only. */
  readonly type: string;
  readonly end: number;
}

type FindCall = (text: string, start: number) => FoundCall | undefined;

/**
 * V3 and R1: type, separator and name on one line, then arguments in a fence. Up to 0.24 the
 * arguments must be on one line.
 */
const findFenced = (text: string, start: number, isOneLine: boolean): FoundCall | undefined => {
  const headEnd = text.indexOf("\n", start);
  if (headEnd === -1 || !text.startsWith(fence, headEnd + 1)) return undefined;
  const bodyStart = headEnd + 1 + fence.length;
  const tail = `\n\`\`\`${close}`;
  const bodyEnd = text.indexOf(isOneLine ? "\n" : tail, bodyStart);
  if (bodyEnd === -1 || !text.startsWith(tail, bodyEnd)) return undefined;
  const head = text.slice(start, headEnd);
  const nameStart = head.lastIndexOf(separator);
  if (nameStart === -1) return undefined;
  return {
    type: head.slice(0, nameStart),
    name: head.slice(nameStart + separator.length),
    argumentsText: text.slice(bodyStart, bodyEnd),
    end: bodyEnd + tail.length,
  };
};

/** V3.1: name and separator on one line, then arguments, up to 0.24 on the same line. */
const findPlain = (text: string, start: number, isOneLine: boolean): FoundCall | undefined => {
  const lineBreak = text.indexOf("\n", start);
  const lineEnd = lineBreak === -1 ? text.length : lineBreak;
  const nameEnd = text.indexOf(separator, start);
  if (nameEnd === -1 || nameEnd > lineEnd) return undefined;
  const argumentsStart = nameEnd + separator.length;
  const end = text.indexOf(close, argumentsStart);
  if (end === -1 || (isOneLine && end > lineEnd)) return undefined;
  return {
    type: "function",
    name: text.slice(start, nameEnd),
    argumentsText: text.slice(argumentsStart, end),
    end: end + close.length,
  };
};

function findCalls(text: string, find: FindCall): FoundCall[] {
  const calls: FoundCall[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const call = find(text, start + open.length);
    if (call !== undefined) calls.push(call);
    // If one call on a line is malformed, no later call on that line can match.
    const lineEnd = text.indexOf("\n", start);
    const next = call?.end ?? (lineEnd === -1 ? text.length : lineEnd);
    start = text.indexOf(open, next);
  }
  return calls;
}

function defineReading(find: FindCall, keepsTail: boolean) {
  return vllmReading({
    marker: sectionOpen,
    extract: (text) => {
      const first = text.indexOf(sectionOpen);
      const calls = first === -1 ? [] : findCalls(text, find);
      if (first === -1 || calls.some(({ type }) => type !== "function")) return undefined;
      return {
        content: text.slice(0, first) + (keepsTail ? textAfter(text) : ""),
        calls: calls.map(({ name, argumentsText }) => ({ name, argumentsText })),
      };
    },
  });
}

/** The text after the last end of a section. */
function textAfter(text: string): string {
  const end = text.lastIndexOf(sectionClose);
  return end === -1 ? "" : text.slice(end + sectionClose.length);
}

/**
 * vLLM's parser for DeepSeek V3 and R1. The arguments are passed on unchanged, but up to 0.24 they
 * must be on one line.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/deepseekv3_tool_parser.py`.
 */
export const vllmDeepseekV3 = byVersion(
  defineReading((text, start) => findFenced(text, start, true), false),
  defineReading((text, start) => findFenced(text, start, false), true),
);

/**
 * vLLM's parser for DeepSeek V3.1. The arguments are passed on unchanged, but up to 0.24 they must
 * be on one line.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/deepseekv31_tool_parser.py`.
 */
export const vllmDeepseekV31 = byVersion(
  defineReading((text, start) => findPlain(text, start, true), false),
  defineReading((text, start) => findPlain(text, start, false), false),
);
