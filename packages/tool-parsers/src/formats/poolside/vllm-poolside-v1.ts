import { parsePythonJson, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import {
  evaluatePythonLiteral,
  requireJson,
  jsonLiteral,
} from "../../shared/python/python-literal.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { requireDict } from "../../shared/schema/require-dict.ts";

const open = "<tool_call>";
const close = "</tool_call>";
const edgeSpace = unicodePattern(String.raw`^\s+|(?<!\s)\s+$`, "g");

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const read = context.engineVersion === "0.24" ? readOldCall : readCall;
  const calls = betweenTags(text, open, close).flatMap((inner) => read(inner, context));
  if (calls.length === 0) return undefined;
  const before = text.slice(0, text.indexOf(open));
  return { content: pythonStrip(before) === "" ? "" : before, calls };
}

/** Reads a call as vLLM 0.24 does: the name is a line of its own. */
function readOldCall(inner: string, context: ParseContext): VllmCall[] {
  const lineEnd = inner.indexOf("\n");
  if (lineEnd === -1) return [];
  const name = pythonStrip(inner.slice(0, lineEnd));
  const values = new Map<string, PyValue>();
  for (const [rawKey, rawValue] of findArgPairs(inner.slice(lineEnd + 1), { unicodeSpace: true })) {
    const key = pythonStrip(rawKey);
    const text = pythonStrip(rawValue);
    values.set(key, isText(name, key, context) ? text : deserialize(text));
  }
  return [{ name, argumentsText: writeJson(values) }];
}

/**
 * Reads a call as vLLM 0.33 and later do: arguments may follow the name immediately, and text keeps
 * its white space.
 */
function readCall(inner: string, context: ParseContext): VllmCall[] {
  const starts = [0, ...indexesOf(inner, open).map((start) => start + open.length)];
  for (const start of starts) {
    const found = readHead(inner.slice(start));
    if (found === undefined) continue;
    const values = new Map<string, PyValue>();
    for (const [rawKey, text] of findArgPairs(found.body, { unicodeSpace: true })) {
      const key = pythonStrip(rawKey);
      const isVerbatim = isText(found.name, key, context);
      values.set(key, isVerbatim ? text : deserialize(pythonStrip(text)));
    }
    const argumentsText = writeJson(values);
    return [{ name: found.name, argumentsText }];
  }
  return [];
}

/** Reads a name on one line, and the arguments after it, if any. */
function readHead(text: string): { name: string; body: string } | undefined {
  const tag = text.indexOf("<");
  const head = tag === -1 ? text : text.slice(0, tag);
  if (tag !== -1 && !text.startsWith("<arg_key>", tag)) return undefined;
  const name = head.replace(edgeSpace, "");
  // If the head is only white space, anything but line breaks counts as a name.
  const isName = name === "" ? /[^\n]/.test(head) : !name.includes("\n");
  return isName ? { name: pythonStrip(name), body: text.slice(head.length) } : undefined;
}

/**
 * True if the schema declares the parameter as a string.
 *
 * @throws PythonError if a schema has another form than the engine expects.
 */
function isText(name: string, key: string, { tools }: ParseContext): boolean {
  const tool = tools.find((candidate) => candidate.name === name);
  const parameters = tool === undefined ? null : (toolParameters(tool) ?? null);
  if (parameters === null) return false;
  const properties = requireDict(parameters).get("properties") ?? new Map<string, PyValue>();
  const schema = requireDict(properties).get(key) ?? new Map<string, PyValue>();
  return requireDict(schema).get("type") === "string";
}

function deserialize(text: string): PyValue {
  const json = catchPython(() => parsePythonJson(text), "JSONDecodeError");
  if (json !== undefined) return json;
  const literal = catchPython(() => evaluatePythonLiteral(text), "ValueError", "SyntaxError");
  return requireJson(literal ?? jsonLiteral(text));
}

/**
 * vLLM's parser for Poolside's Laguna: up to 0.24 the name needs its own line. Unknown tools are
 * reported.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/poolside_v1_tool_parser.py`.
 */
export const vllmPoolsideV1 = vllmReading({
  marker: open,
  strips: true,
  catchesAll: true,
  extract,
});
