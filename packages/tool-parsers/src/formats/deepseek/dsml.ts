import {
  isPyDict,
  parsePythonJson,
  pythonStrip,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import { isSince, type SglangVersion } from "../../engine-version.ts";
import { defineParser, type EngineReading, type EngineResult } from "../../grammar.ts";
import { hasJsonConstants } from "../../shared/json/json-constants.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonPattern, pythonTextEnd } from "../../shared/text/python-pattern.ts";
import { malformed, markerOnly, unclosed, invalidJson } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall, ToolCallParser } from "../../tool-call-parser.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { SectionTracker } from "../../shared/tags/section-tracker.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { vllmDeepseekV32, vllmDeepseekV4, vllmDeepseekV41 } from "./vllm-dsml.ts";
import { callsNamed } from "../../sglang/base-json.ts";

/** The names of the tags, in which the formats differ. */
interface DsmlTags {
  /** The tag around all calls. Names may begin with a space. */
  readonly section: string;
  readonly invoke: string;
  readonly parameter: string;
}

/** The tags of a format as they are searched. */
interface DsmlMarkup {
  readonly open: string;
  readonly close: string;
  readonly invokeOpen: string;
  readonly invokeClose: string;
  readonly parameterOpen: string;
  readonly parameterClose: string;
  readonly headPattern: RegExp;
  readonly parameterPattern: RegExp;
}

const token = "｜DSML｜";

function markupOf({ section, invoke, parameter }: DsmlTags): DsmlMarkup {
  return {
    open: `<${token}${section}>`,
    close: `</${token}${section}>`,
    invokeOpen: `<${token}${invoke}`,
    invokeClose: `</${token}${invoke}>`,
    parameterOpen: `<${token}${parameter}`,
    parameterClose: `</${token}${parameter}>`,
    headPattern: pythonPattern(String.raw`<${token}${invoke}\s+name="([^"]+)"\s*(?:(/>)|>)`, "g"),
    parameterPattern: pythonPattern(
      String.raw`<${token}${parameter}\s+name="([^"]+)"\s+string="([^"]+)"\s*>`,
      "g",
    ),
  };
}

/** A call and its place in the text. */
interface Invoke {
  readonly name: string;
  readonly body: string;
  readonly start: number;
  readonly end: number;
  readonly closed: boolean;
}

function findInvokes(text: string, { headPattern, invokeClose }: DsmlMarkup): Invoke[] {
  const found: Invoke[] = [];
  const head = new RegExp(headPattern);
  for (let match = head.exec(text); match !== null; match = head.exec(text)) {
    const name = pythonStrip(match[1] ?? "");
    const start = match.index;
    const bodyStart = head.lastIndex;
    if (match[2] !== undefined) {
      found.push({ name, body: "", start, end: bodyStart, closed: true });
      continue;
    }
    const close = text.indexOf(invokeClose, bodyStart);
    const closed = close !== -1;
    const bodyEnd = closed ? close : Math.max(bodyStart, pythonTextEnd(text));
    const end = closed ? close + invokeClose.length : bodyEnd;
    found.push({ name, body: text.slice(bodyStart, bodyEnd), start, end, closed });
    head.lastIndex = end;
  }
  return found;
}

/** The arguments of a call, and the text of its body outside its parameters. */
interface ReadBody {
  readonly value: PyValue;
  readonly rest: string;
  readonly isJson: boolean;
}

/**
 * Reads the arguments of a call: its body if that is an object, or its parameters, each of which
 * declares whether it is a string.
 *
 * @throws PythonError for a body in braces that is not JSON.
 */
function readBody(body: string, markup: DsmlMarkup, isStrict: boolean): ReadBody {
  const parse = isStrict ? parseWithoutConstants : parsePythonJson;
  const stripped = pythonStrip(body);
  if (stripped.startsWith("{") && (isStrict || stripped.endsWith("}"))) {
    return { value: parse(stripped), rest: "", isJson: true };
  }
  const { parameterPattern, parameterClose } = markup;
  const values = new Map<string, PyValue>();
  const rest: string[] = [];
  const head = new RegExp(parameterPattern);
  let position = 0;
  for (let match = head.exec(body); match !== null; match = head.exec(body)) {
    const end = body.indexOf(parameterClose, head.lastIndex);
    if (end === -1) break;
    rest.push(body.slice(position, match.index));
    const text = pythonStrip(body.slice(head.lastIndex, end));
    position = end + parameterClose.length;
    head.lastIndex = position;
    const [, key = "", isString] = match;
    const json = isString === "true" ? undefined : catchPython(() => parse(text), "ValueError");
    values.set(key, json === undefined ? text : json);
  }
  rest.push(body.slice(position));
  return { value: values, rest: rest.join(""), isJson: false };
}

/** Reads JSON strictly. @throws PythonError `ValueError` also for `NaN` and `Infinity`. */
function parseWithoutConstants(text: string): PyValue {
  const value = parsePythonJson(text);
  if (hasJsonConstants(text)) throw new PythonValueError("Invalid JSON constant");
  return value;
}

/** SGLang up to August 2026: reads sections only, and one bad call loses all calls. */
function detectSections(text: string, context: ParseContext, markup: DsmlMarkup): EngineResult {
  const first = text.indexOf(markup.open);
  if (first === -1) return { normalText: text, calls: [] };
  const sections = betweenTags(text, markup.open, markup.close);
  // Earlier releases read the first section only.
  const read = isSince(sglangVersion(context), "2026-08") ? sections : sections.slice(0, 1);
  const calls = read
    .flatMap((section) => findInvokes(section, markup))
    .flatMap(({ name, body }) => toCalls(name, readBody(body, markup, false).value, context));
  return { normalText: withoutBreaks(text.slice(0, first)), calls };
}

/** SGLang since 0.5.23: calls without a section count, and a bad call is dropped alone. */
function detectCalls(text: string, context: ParseContext, markup: DsmlMarkup): EngineResult {
  const first = text.indexOf(markup.open);
  const bare = first === -1 ? text.indexOf(markup.invokeOpen) : -1;
  if (first === -1 && bare === -1) return { normalText: text, calls: [] };
  const sections = first === -1 ? [text.slice(bare)] : betweenTags(text, markup.open, markup.close);
  const calls = sections
    .flatMap((section) => findInvokes(section, markup))
    .flatMap(({ name, body, closed }) => {
      const read = closed
        ? catchPython(() => readBody(body, markup, true), "ValueError", "RecursionError")
        : undefined;
      if (read === undefined || isMalformed(read)) return [];
      return toCalls(name, read.value, context);
    });
  const end = first === -1 ? startOfMarkup(text) : first;
  return { normalText: withoutBreaks(text.slice(0, end)), calls };
}

/** True for JSON that is not an object, and for a parameter in the wrong form. */
function isMalformed({ value, rest, isJson }: ReadBody): boolean {
  if (isJson) return !isPyDict(value);
  const isEmpty = isPyDict(value) && value.size === 0;
  return rest.includes(token) || (isEmpty && pythonStrip(rest) !== "");
}

function toCalls(name: string, value: PyValue, context: ParseContext): CompatCall[] {
  return callsNamed(name, value, context);
}

/** The start of the first tag, which may be a closing tag. */
function startOfMarkup(text: string): number {
  const index = text.indexOf(token);
  if (text.slice(Math.max(0, index - 2), index) === "</") return index - 2;
  return text[index - 1] === "<" ? index - 1 : index;
}

function withoutBreaks(text: string): string {
  return text.endsWith("\n\n") ? text.slice(0, -2) : text;
}

function findBlocks(text: string, markup: DsmlMarkup, needsSection: boolean): Block[] {
  const { open, close, invokeOpen } = markup;
  const sections = new SectionTracker(text, open, close);
  const hasSections = text.includes(open);
  const invokes = findInvokes(text, markup);
  const blocks: Block[] = [];
  let position = 0;
  let next = 0;
  for (const start of indexesOf(text, invokeOpen)) {
    if (start < position) continue;
    const invoke = invokes[next];
    if (invoke?.start !== start) {
      blocks.push(markerOnly(start, invokeOpen));
      continue;
    }
    const isOutside = (needsSection || hasSections) && !sections.isInside(start);
    blocks.push(
      readBlock(invoke, markup, isOutside ? malformed(`expected ${open} before`) : undefined),
    );
    position = invoke.end;
    next += 1;
  }
  return blocks;
}

function readBlock(invoke: Invoke, markup: DsmlMarkup, outside: Diagnostic | undefined): Block {
  const { name, body, start, end } = invoke;
  const base = { span: [start, end] as const, name };
  const trimmed = body.trim();
  if (trimmed.startsWith("{") && invoke.closed) {
    const json = readJson(trimmed);
    if (json.type === "problem") {
      return { ...base, problem: invalidJson(json.detail) };
    }
  }
  const read = catchPython(() => readBody(body, markup, false));
  const problem = checkStructure(invoke, markup) ?? outside;
  return {
    ...base,
    ...(read !== undefined && { argumentValue: read.value }),
    ...(problem !== undefined && { problem }),
  };
}

function checkStructure({ body, closed }: Invoke, markup: DsmlMarkup): Diagnostic | undefined {
  if (!closed) return unclosed(markup.invokeClose);
  const openCount = indexesOf(body, markup.parameterOpen).length;
  const closeCount = indexesOf(body, markup.parameterClose).length;
  return openCount === closeCount ? undefined : malformed(`expected ${markup.parameterClose}`);
}

/** One of DeepSeek's formats. */
interface DsmlFormat extends DsmlTags {
  readonly name: string;
  readonly vllm?: EngineReading;
  readonly vllmName: string;
}

function defineDsml({ name, vllm, vllmName, ...tags }: DsmlFormat): ToolCallParser {
  const markup = markupOf(tags);
  const { open, close, invokeOpen } = markup;
  const isOld = (version: SglangVersion): boolean =>
    tags.section !== " calls" && !isSince(version, "0.5.23");
  return defineParser({
    name,
    aliases: [vllmName],
    closers: new RegExp(close, "g"),
    markers: [open],
    readings: {
      sglang: sglangReading({
        release: { stops: [`<${token}`, `</${token}`, token], strips: false, dropsBreaks: true },
        hasToolCall: (text) => text.includes(open) || text.includes(invokeOpen),
        detect: (text, context) => {
          if (!isOld(sglangVersion(context))) return detectCalls(text, context, markup);
          const read = catchPython(() => detectSections(text, context, markup));
          return read ?? { normalText: text, calls: [] };
        },
      }),
      ...(vllm !== undefined && { vllm }),
    },
    findBlocks: (text, context) =>
      findBlocks(text, markup, isOld(sglangVersion(context)) || context.dialect === "vllm"),
  });
}

/**
 * DeepSeek V3.2: DSML tags inside `<｜DSML｜function_calls>`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/deepseekv32_detector.py`.
 */
export const deepseekV32 = defineDsml({
  name: "deepseekv32",
  section: "function_calls",
  invoke: "invoke",
  parameter: "parameter",
  vllm: vllmDeepseekV32,
  vllmName: "deepseek_v32",
});

/**
 * DeepSeek V4: DSML tags inside `<｜DSML｜tool_calls>`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/deepseekv4_detector.py`.
 */
export const deepseekV4 = defineDsml({
  name: "deepseekv4",
  section: "tool_calls",
  invoke: "invoke",
  parameter: "parameter",
  vllm: vllmDeepseekV4,
  vllmName: "deepseek_v4",
});

/**
 * DeepSeek V4.1: DSML tags inside `<｜DSML｜ calls>`, each with a space in front of its name.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/deepseekv41_detector.py`.
 */
export const deepseekV41 = defineDsml({
  name: "deepseekv41",
  section: " calls",
  invoke: " invoke",
  parameter: " parameter",
  vllm: vllmDeepseekV41,
  vllmName: "deepseek_v41",
});
