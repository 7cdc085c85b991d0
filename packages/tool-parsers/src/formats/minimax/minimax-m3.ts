import {
  isPyDict,
  type PyDict,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { isSince } from "../../engine-version.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { parseBaseJson } from "../../sglang/base-json.ts";
import { minimaxNamespace, readNestedElements } from "./minimax-m3-elements.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmMinimaxM3 } from "./vllm-minimax-m3.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import {
  betweenTags,
  outsideTags,
  findClosed,
  divideSpan,
} from "../../shared/tags/between-tags.ts";

const open = `${minimaxNamespace}<tool_call>`;
const close = `${minimaxNamespace}</tool_call>`;
const invokeOpen = `${minimaxNamespace}<invoke name="`;
const invokeClose = `${minimaxNamespace}</invoke>`;

/** Matches white space between the namespace and a tag, which is ignored. */
const spacing = /\]<\]minimax\[>\[[ \t\r\n]+(?=<)/g;

function normalize(text: string): string {
  return text.replaceAll(spacing, minimaxNamespace);
}

/**
 * SGLang's detector for MiniMax M3. Tags that do not match lose all calls of the turn.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minimax_m3.py`.
 */
function detect(original: string, context: ParseContext): EngineResult {
  const text = normalize(original);
  const calls = betweenTags(text, open, close).flatMap((block) => readCalls(block, context));
  return { normalText: outsideTags(text, open, close), calls };
}

function readCalls(block: string, context: ParseContext): CompatCall[] {
  const calls: CompatCall[] = [];
  for (const text of betweenTags(block, invokeOpen, invokeClose)) {
    const invoke = readInvoke(text, context);
    if (invoke === undefined) continue;
    const entry = new Map<string, PyValue>([
      ["name", invoke.name],
      ["arguments", invoke.value],
    ]);
    // Without tools the name is accepted unchecked.
    const read =
      context.tools.length === 0 && isNew(context)
        ? [{ name: invoke.name, argumentsText: writeJson(invoke.value), toolIndex: -1 }]
        : (catchPython(() => parseBaseJson(entry, context)) ?? []);
    // The engine numbers the calls of each block from 0.
    for (const call of read) calls.push({ ...call, toolIndex: calls.length });
  }
  return calls;
}

function isNew(context: ParseContext): boolean {
  return isSince(sglangVersion(context), "0.5.23");
}

/** Reads an invoke element. @throws PythonError if the tags do not match. */
function readInvoke(
  text: string,
  context: ParseContext,
): { name: string; value: PyValue } | undefined {
  const nameEnd = text.indexOf('">');
  if (nameEnd === -1) return undefined;
  const name = text.slice(0, nameEnd);
  const tool = context.tools.find((candidate) => candidate.name === name);
  const schema = tool === undefined ? undefined : toolParameters(tool);
  const known: PyDict | undefined = isPyDict(schema) ? schema : undefined;
  return { name, value: readNestedElements(text.slice(nameEnd + 2), known, isNew(context)) };
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const invokes = findClosed(inner, invokeOpen, invokeClose);
  if (invokes.length === 0) return [{ span, problem: malformed("expected an invoke element") }];
  const starts = invokes.map(({ start }) => innerStart + start);
  return divideSpan(span, starts).map((part, index) =>
    readBlock(part, invokes[index]?.inner ?? "", context),
  );
}

function readBlock(span: Block["span"], text: string, context: ParseContext): Block {
  const name = pythonStrip(text.slice(0, Math.max(0, text.indexOf('">'))));
  const invoke = catchPython(() => readInvoke(normalize(text), context));
  if (invoke === undefined) return { span, name, problem: malformed("the tags do not match") };
  return { span, name: invoke.name, argumentValue: invoke.value };
}

/** MiniMax M3: nested elements, each tag after a namespace marker. */
export const minimaxM3 = defineParser({
  name: "minimax-m3",
  aliases: ["minimax_m3"],
  readings: {
    sglang: sglangReading({
      release: { stops: [minimaxNamespace] },
      needsNoTools: true,
      hasToolCall: (text) => normalize(text).includes(open),
      catchesAll: true,
      detect,
    }),
    vllm: vllmMinimaxM3,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:\]<\]|$)/,
    read: readBlocks,
  },
});
