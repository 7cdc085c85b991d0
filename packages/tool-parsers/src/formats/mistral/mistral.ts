import { parsePythonJson, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { findBracketEnd } from "../../shared/json/bracket-end.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { blocksOfPayload, readJson, readJsonPrefix } from "../../shared/json/json-payload.ts";
import { parseOrjson } from "../../shared/json/orjson.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, markerOnly, unclosed, invalidJson } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall, Dialect } from "../../tool-call-parser.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmMistral } from "./vllm-mistral.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

const marker = "[TOOL_CALLS";
const arrayMarker = "[TOOL_CALLS] [";
const argumentsMarker = "[ARGS";

/**
 * SGLang's detector for Mistral: a JSON list after `[TOOL_CALLS] `, or since the 2025 templates
 * `[TOOL_CALLS]name[ARGS]{…}`, once or several times.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/mistral_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(marker);
  if (first === -1) return { normalText: text, calls: [] };
  const normalText = pythonStrip(text.slice(0, first));
  const toolPart = text.slice(first);
  return toolPart.includes(arrayMarker)
    ? detectArray(toolPart, normalText, context)
    : detectCompact(toolPart, normalText, context);
}

function detectArray(toolPart: string, normalText: string, context: ParseContext): EngineResult {
  const start = toolPart.indexOf(arrayMarker) + arrayMarker.length - 1;
  const end = findBracketEnd(toolPart, start);
  if (end === undefined) return { normalText, calls: [] };
  const json = toolPart.slice(start, end);
  const entries = catchPython(() => parsePythonJson(json), "JSONDecodeError");
  const calls = entries === undefined ? [] : parseBaseJson(entries, context);
  const trailing = pythonStrip(toolPart.slice(toolPart.indexOf(json) + json.length));
  return { normalText: joinTexts(normalText, trailing), calls };
}

function detectCompact(toolPart: string, normalText: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  let remaining = toolPart;
  while (remaining !== "") {
    const call = readCompact(remaining);
    if (call === undefined) break;
    const entry = new Map<string, PyValue>([
      ["name", call.name],
      ["arguments", call.value],
    ]);
    calls.push(...parseBaseJson(entry, context));
    remaining = pythonStrip(remaining.slice(call.end));
  }
  if (calls.length === 0) return { normalText, calls };
  return { normalText: joinTexts(normalText, remaining), calls };
}

function joinTexts(before: string, after: string): string {
  return after === "" ? before : pythonStrip(`${before} ${after}`);
}

/**
 * Reads the first compact call of the text. Arguments must be an object or a list that orjson
 * accepts.
 */
function readCompact(text: string): { name: string; value: PyValue; end: number } | undefined {
  const start = text.indexOf(marker);
  if (start === -1) return undefined;
  const nameStart = skipDelimiter(text, start + marker.length);
  const nameEnd = text.indexOf(argumentsMarker, nameStart);
  if (nameEnd === -1) return undefined;
  const name = pythonStrip(text.slice(nameStart, nameEnd));
  const jsonStart = skipDelimiter(text, nameEnd + argumentsMarker.length);
  const opens = text[jsonStart] === "{" || text[jsonStart] === "[";
  const end = name !== "" && opens ? findBracketEnd(text, jsonStart) : undefined;
  if (end === undefined) return undefined;
  const json = text.slice(jsonStart, end);
  if (catchPython(() => parseOrjson(json), "JSONDecodeError") === undefined) return undefined;
  return { name, value: parsePythonJson(json), end };
}

/** Skips the end of a marker. Its closing bracket may be missing, and white space may follow. */
function skipDelimiter(text: string, start: number): number {
  return skipPythonSpace(text, text[start] === "]" ? start + 1 : start);
}

function findBlocks(text: string, { dialect }: ParseContext): Block[] {
  const blocks: Block[] = [];
  const starts = indexesOf(text, marker);
  let position = 0;
  for (const [index, start] of starts.entries()) {
    if (start < position) continue;
    const nextStart = starts[index + 1] ?? text.length;
    const found = readBlocks(text, { start, nextStart, dialect });
    blocks.push(...found);
    position = found.at(-1)?.span[1] ?? position;
  }
  return blocks;
}

interface Place {
  readonly start: number;
  readonly nextStart: number;
  readonly dialect: Dialect;
}

function readBlocks(text: string, place: Place): Block[] {
  const { start, nextStart } = place;
  const contentStart = skipDelimiter(text, start + marker.length);
  if (text[contentStart] === "[") return readArrayBlocks(text, { ...place, contentStart });
  const header = text.slice(contentStart, nextStart);
  const nameEnd = header.indexOf(argumentsMarker);
  if (nameEnd === -1) {
    if (!/^[\w.-]*\s*(?:\{|$)/.test(header)) return [markerOnly(start, "[TOOL_CALLS]")];
    return [{ span: [start, nextStart], problem: malformed(`expected a name and [ARGS]`) }];
  }
  const name = header.slice(0, nameEnd).trim();
  const jsonStart = skipDelimiter(text, contentStart + nameEnd + argumentsMarker.length);
  const json = readJsonPrefix(text.slice(jsonStart));
  if (json.type === "value") {
    return [{ span: [start, jsonStart + json.end], name, argumentValue: json.value }];
  }
  const problem = closesBefore(text, jsonStart, nextStart)
    ? invalidJson(json.detail)
    : unclosed("}");
  return [{ span: [start, nextStart], name, problem }];
}

function closesBefore(text: string, start: number, end: number): boolean {
  return findBracketEnd(text.slice(start, end), 0) !== undefined;
}

function readArrayBlocks(text: string, place: Place & { readonly contentStart: number }): Block[] {
  const { start, contentStart, nextStart, dialect } = place;
  const reading = readJsonPrefix(text.slice(contentStart));
  if (reading.type === "value") {
    const end = contentStart + reading.end;
    // Only SGLang requires the space, which some of Mistral's own templates do not write.
    const isSpaced = dialect !== "sglang" || text.startsWith(arrayMarker, start);
    return blocksOfPayload(
      {
        span: [start, end],
        value: reading.value,
        json: text.slice(contentStart, end),
        jsonStart: contentStart,
      },
      { readArguments: argumentsOfEntry },
      isSpaced ? undefined : malformed("expected one space between [TOOL_CALLS] and the list"),
    );
  }
  const end = findBracketEnd(text.slice(contentStart, nextStart), 0);
  if (end === undefined) return [{ span: [start, nextStart], problem: unclosed("]") }];
  const json = readJson(text.slice(contentStart, contentStart + end));
  const detail = json.type === "problem" ? json.detail : reading.detail;
  return [{ span: [start, contentStart + end], problem: invalidJson(detail) }];
}

/** Mistral: `[TOOL_CALLS] [{"name": …, "arguments": …}]` or `[TOOL_CALLS]name[ARGS]{…}`. */
export const mistral = defineParser({
  name: "mistral",
  markers: ["[TOOL_CALLS]"],
  readings: {
    sglang: sglangReading({
      marker: marker,
      strips: true,
      detect,
    }),
    vllm: vllmMistral,
  },
  findBlocks,
});
