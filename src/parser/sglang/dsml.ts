import { parsePythonJson } from "../../python/json-parse.ts";
import { pythonStrip } from "../../python/strip.ts";
import type { PyValue } from "../../python/value.ts";
import type { Block, Diagnostic } from "../attempt.ts";
import { isSince } from "../engine-version.ts";
import type { EngineReading, EngineResult } from "../grammar.ts";
import { defineParser } from "../grammar.ts";
import { readJson } from "../json-payload.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../python-catch.ts";
import { pythonPattern, pythonTextEnd } from "../python-pattern.ts";
import { malformed, markerOnly, unclosed } from "../tag-blocks.ts";
import type { ToolCallParser } from "../tool-call-parser.ts";
import { indexesOf } from "../indexes-of.ts";
import { SectionTracker } from "../section-tracker.ts";
import { parseBaseJson } from "./base-json.ts";
import { betweenTags } from "./between-tags.ts";
import { sglangReading, sglangVersion } from "./sglang-reading.ts";
import { vllmDeepseekV32, vllmDeepseekV4 } from "../vllm/dsml.ts";

const invokeOpen = "<｜DSML｜invoke";
const invokeClose = "</｜DSML｜invoke>";
const parameterClose = "</｜DSML｜parameter>";
const headPattern = pythonPattern(String.raw`<｜DSML｜invoke\s+name="([^"]+)"\s*(?:(/>)|>)`, "g");
const parameterPattern = pythonPattern(
  String.raw`<｜DSML｜parameter\s+name="([^"]+)"\s+string="([^"]+)"\s*>`,
  "g",
);

/** A call as it stands in the text. */
interface Invoke {
  readonly name: string;
  readonly body: string;
  readonly start: number;
  readonly end: number;
  readonly closed: boolean;
}

function findInvokes(text: string): Invoke[] {
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

/**
 * The arguments of a call: its whole body where that is an object, or its parameters, each of which
 * says itself whether it is a string.
 *
 * @throws PythonError for a body in braces that is no JSON.
 */
function readArguments(body: string): PyValue {
  const stripped = pythonStrip(body);
  if (stripped.startsWith("{") && stripped.endsWith("}")) return parsePythonJson(stripped);
  const values = new Map<string, PyValue>();
  const head = new RegExp(parameterPattern);
  for (let match = head.exec(body); match !== null; match = head.exec(body)) {
    const end = body.indexOf(parameterClose, head.lastIndex);
    if (end === -1) break;
    const text = pythonStrip(body.slice(head.lastIndex, end));
    head.lastIndex = end + parameterClose.length;
    const [, key = "", isString] = match;
    const json =
      isString === "true" ? undefined : catchPython(() => parsePythonJson(text), "ValueError");
    values.set(key, json === undefined ? text : json);
  }
  return values;
}

function detect(text: string, context: ParseContext, section: string): EngineResult {
  const open = `<｜DSML｜${section}>`;
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const before = text.slice(0, first);
  const normalText = before.endsWith("\n\n") ? before.slice(0, -2) : before;
  const sections = betweenTags(text, open, `</｜DSML｜${section}>`);
  // Releases before read the first section only.
  const read = isSince(sglangVersion(context), "2026-08") ? sections : sections.slice(0, 1);
  const calls = read.flatMap(findInvokes).flatMap(({ name, body }) => {
    const entry = new Map<string, PyValue>([
      ["name", name],
      ["parameters", readArguments(body)],
    ]);
    return parseBaseJson(entry, context);
  });
  return { normalText, calls };
}

function findBlocks(text: string, section: string): Block[] {
  const open = `<｜DSML｜${section}>`;
  const sections = new SectionTracker(text, open, `</｜DSML｜${section}>`);
  const invokes = findInvokes(text);
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
    const outside = sections.isInside(start) ? undefined : malformed(`expected ${open} before`);
    blocks.push(readBlock(invoke, outside));
    position = invoke.end;
    next += 1;
  }
  return blocks;
}

function readBlock(invoke: Invoke, outside: Diagnostic | undefined): Block {
  const { name, body, start, end } = invoke;
  const base = { span: [start, end] as const, name };
  const trimmed = body.trim();
  if (trimmed.startsWith("{") && invoke.closed) {
    const json = readJson(trimmed);
    if (json.type === "problem") {
      return { ...base, problem: { status: "invalid-json", detail: json.detail } };
    }
  }
  const argumentValue = catchPython(() => readArguments(body));
  const problem = checkStructure(invoke) ?? outside;
  return {
    ...base,
    ...(argumentValue === undefined ? {} : { argumentValue }),
    ...(problem === undefined ? {} : { problem }),
  };
}

function checkStructure({ body, closed }: Invoke): Diagnostic | undefined {
  if (!closed) return unclosed(invokeClose);
  const openCount = indexesOf(body, "<｜DSML｜parameter").length;
  const closeCount = indexesOf(body, parameterClose).length;
  return openCount === closeCount ? undefined : malformed(`expected ${parameterClose}`);
}

/** What tells the formats apart: most of all, the name of the outer tag. */
interface DsmlFormat {
  readonly name: string;
  readonly section: string;
  readonly vllm: EngineReading;
  readonly vllmName: string;
}

function defineDsml({ name, section, vllm, vllmName }: DsmlFormat): ToolCallParser {
  const open = `<｜DSML｜${section}>`;
  return defineParser({
    name,
    aliases: [vllmName],
    closers: new RegExp(`</｜DSML｜${section}>`, "g"),
    markers: [open],
    readings: {
      sglang: sglangReading({
        release: { stops: [open], strips: false, dropsBreaks: true },
        hasToolCall: (text) => text.includes(open) || text.includes(invokeOpen),
        detect: (text, context) =>
          catchPython(() => detect(text, context, section)) ?? { normalText: text, calls: [] },
      }),
      vllm,
    },
    findBlocks: (text) => findBlocks(text, section),
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
  vllm: vllmDeepseekV4,
  vllmName: "deepseek_v4",
});
