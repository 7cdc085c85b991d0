import {
  isPyDict,
  isPythonSpace,
  parsePythonJson,
  PythonError,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { isSince } from "../../engine-version.ts";
import { defineParser, type EngineResult, type Grammar } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonInt } from "../../shared/python/python-number.ts";
import { malformed, invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { vllmKimiK2 } from "./vllm-kimi-k2.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

const sectionOpen = "<|tool_calls_section_begin|>";
const open = "<|tool_call_begin|>";
const close = "<|tool_call_end|>";
const argumentsOpen = "<|tool_call_argument_begin|>";

const idPattern = /^(?:functions\.)?(?<name>[\p{L}\p{N}_.-]+):(?<index>\p{Nd}+)$/u;
const counterPattern = /^\p{Nd}+$/u;

/** A call as it is written: its id, and the text of its arguments. */
interface CallParts {
  readonly id: string;
  readonly json: string;
}

/**
 * SGLang's detector for Kimi K2. The arguments are passed on unchanged. If a call's id is a bare
 * number, the call gets the name of the tool whose parameters fit best. Before 0.5.15 the number of
 * the id was the call's index.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/kimik2_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(sectionOpen);
  if (first === -1) return { normalText: text, calls: [] };
  const calls: CompatCall[] = [];
  const countsCalls = isSince(sglangVersion(context), "0.5.15");
  for (const { id, json } of findCalls(text)) {
    const name = nameOfCall(id, json, context);
    if (name === undefined) continue;
    const toolIndex = countsCalls ? calls.length : Number(numberOfId(id));
    calls.push({ name, argumentsText: json, toolIndex });
  }
  return { normalText: text.slice(0, first), calls };
}

/** Finds every id and argument text that the engine's pattern matches. */
function findCalls(text: string): CallParts[] {
  const ends = findArgumentEnds(text);
  const found: CallParts[] = [];
  let position = 0;
  let endIndex = 0;
  for (const start of indexesOf(text, open)) {
    if (start < position) continue;
    const header = readHeader(text, start + open.length);
    if (header === undefined) continue;
    while ((ends[endIndex]?.brace ?? Infinity) <= header.jsonStart) endIndex += 1;
    const end = ends[endIndex];
    if (end === undefined) return found;
    found.push({ id: header.id, json: text.slice(header.jsonStart, end.brace + 1) });
    position = end.end;
  }
  return found;
}

/**
 * Returns the positions where arguments can end: those of a closing brace with only white space between it and the end
 * marker.
 */
function findArgumentEnds(text: string): { brace: number; end: number }[] {
  return indexesOf(text, close).flatMap((marker) => {
    let brace = marker - 1;
    while (brace >= 0 && isPythonSpace(text.charCodeAt(brace))) brace -= 1;
    return text[brace] === "}" ? [{ brace, end: marker + close.length }] : [];
  });
}

function readHeader(text: string, start: number): { id: string; jsonStart: number } | undefined {
  const idStart = skipPythonSpace(text, start);
  let idEnd = idStart;
  while (idEnd < text.length && !/[<|]/.test(text[idEnd] ?? "")) {
    if (isPythonSpace(text.charCodeAt(idEnd))) break;
    idEnd += 1;
  }
  const markerStart = skipPythonSpace(text, idEnd);
  if (idEnd === idStart || !text.startsWith(argumentsOpen, markerStart)) return undefined;
  const jsonStart = skipPythonSpace(text, markerStart + argumentsOpen.length);
  return text[jsonStart] === "{" ? { id: text.slice(idStart, idEnd), jsonStart } : undefined;
}

/**
 * The name of the tool that an id calls.
 *
 * @throws PythonError if the engine raises, which loses all calls.
 */
function nameOfCall(id: string, json: string, context: ParseContext): string | undefined {
  const standard = idPattern.exec(id)?.groups;
  if (standard === undefined && !counterPattern.test(id)) return undefined;
  numberOfId(id);
  return standard === undefined ? inferName(json, context) : standard["name"];
}

/** The number in an id. @throws PythonError if it has too many digits for Python. */
function numberOfId(id: string): bigint {
  return parsePythonInt(idPattern.exec(id)?.groups?.["index"] ?? id);
}

function inferName(json: string, context: ParseContext): string | undefined {
  const { tools } = context;
  if (tools.length <= 1) return tools[0]?.name;
  const value = catchPython(() => parsePythonJson(json), "JSONDecodeError");
  if (!isPyDict(value)) return undefined;
  let best: string | undefined;
  let bestScore = -1;
  for (const tool of tools) {
    const properties = propertyNames(sglangParameters(tool, context) ?? null);
    if (properties.size === 0) continue;
    const overlap = [...value.keys()].filter((key) => properties.has(key)).length;
    const score = 2 * overlap - value.size;
    if (score <= bestScore) continue;
    bestScore = score;
    best = tool.name;
  }
  return best;
}

function propertyNames(parameters: unknown): ReadonlySet<string> {
  if (!(parameters instanceof Map)) {
    if (parameters === null) return new Set();
    throw new PythonError("AttributeError", "the parameters of a tool are not an object");
  }
  const properties: unknown = parameters.get("properties") ?? new Map();
  if (properties instanceof Map) return new Set(properties.keys() as Iterable<string>);
  throw new PythonError("AttributeError", "the properties of a tool are not an object");
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const marker = inner.indexOf(argumentsOpen);
  if (marker === -1) return [{ span, problem: malformed(`expected ${argumentsOpen}`) }];
  const id = inner.slice(0, marker).trim();
  const text = inner.slice(marker + argumentsOpen.length).trim();
  const name = catchPython(() => nameOfCall(id, text, context));
  const base = name === undefined ? { span, id } : { span, id, name };
  const json = readJson(text);
  if (json.type === "problem") {
    return [{ ...base, problem: invalidJson(json.detail) }];
  }
  if (name === undefined) {
    const detail = `the call's id is ${JSON.stringify(id)}, expected functions.name:index`;
    return [{ ...base, argumentValue: json.value, problem: { status: "missing-name", detail } }];
  }
  return [{ ...base, argumentValue: json.value, argumentsText: text }];
}

const grammar: Grammar = {
  name: "kimi_k2",
  closers: /<\|tool_calls_section_end\|>/g,
  markers: [sectionOpen],
  readings: {
    sglang: sglangReading({
      marker: sectionOpen,
      catchesAll: true,
      detect,
    }),
    vllm: vllmKimiK2,
  },
  blocks: {
    open,
    close,
    begins: /^\s*[^\s<|]*(?:\s*<\||$)/,
    read: readBlock,
  },
};

/** Kimi K2: `functions.name:index`, then the arguments as JSON, between control tokens. */
export const kimiK2 = defineParser(grammar);
