import {
  decodePythonJsonAt,
  isPyDict,
  isPyList,
  parsePythonJson,
  PythonError,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { engineReading } from "../../vllm/parser-engine.ts";
import {
  asName,
  byVersion,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const marker = "[TOOL_CALLS]";
const argumentsMarker = "[ARGS]";

/** True if the calls are one list, which tokenizers before version 11 were trained with. */
function isList(first: string, { vocabulary }: ParseContext): boolean {
  return vocabulary.length === 0
    ? pythonStrip(first).startsWith("[")
    : !vocabulary.includes(argumentsMarker);
}

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const [before = "", ...parts] = text.split(marker);
  const [first] = parts;
  if (first === undefined) return undefined;
  const content = pythonStrip(before) === "" ? "" : before;
  if (!isList(first, context)) return { content, calls: parts.flatMap(readCompact) };
  if (parts.length > 1) throw new PythonError("ValueError", "[TOOL_CALLS] appears twice");
  const list = pythonStrip(first);
  const entries = decodeList(list);
  return entries === undefined
    ? { content: list, calls: [] }
    : { content, calls: readEntries(entries) };
}

/**
 * Reads a compact call, as since tokenizer version 11: `name{…}`, with or without `[ARGS]`. The
 * text in braces is not checked.
 */
function readCompact(part: string): VllmCall[] {
  const brace = part.indexOf("{");
  if (brace === -1) return [];
  const name = part.slice(0, brace).replaceAll(argumentsMarker, "");
  return [{ name, argumentsText: part.slice(brace) }];
}

/** Reads the JSON at the start of the text, or from the first `[{` to the last `}]`. */
function decodeList(list: string): PyValue | undefined {
  return (
    catchPython(() => decodePythonJsonAt(list, 0).value, "JSONDecodeError") ??
    catchPython(() => parsePythonJson(innermostList(list)), "JSONDecodeError")
  );
}

/** The text from the first `[{` to the last `}]`. */
function innermostList(text: string): string {
  const start = text.indexOf("[{");
  const end = text.lastIndexOf("}]") + "}]".length;
  return start === -1 ? "" : text.slice(start, end);
}

/** Reads the entries of a list. @throws PythonError if an entry is not an object with a name. */
function readEntries(entries: PyValue): VllmCall[] {
  if (!isPyList(entries)) throw new PythonError("TypeError", "the calls are not a list");
  return entries.map((entry) => {
    if (!isPyDict(entry)) throw new PythonError("TypeError", "a call is not an object");
    const value = entry.get("arguments");
    const argumentsText = value === undefined ? "{}" : writeJson(value);
    return { name: asName(entry.get("name")), argumentsText };
  });
}

const old = vllmReading({
  release: { stops: [marker], strips: true, mayRewrite: true },
  extract,
});

/**
 * Reads a list as vLLM does since 0.33: a single object is allowed, other entries are dropped, and
 * a name may be missing.
 */
function extractList(text: string): VllmExtraction | undefined {
  if (!text.includes(marker)) return undefined;
  const [before = "", ...parts] = text.split(marker);
  const list = parts.map((part) => pythonStrip(part)).find((part) => part !== "") ?? "";
  const decoded = decodeList(list);
  const entries = isPyDict(decoded) ? [decoded] : isPyList(decoded) ? decoded : [];
  const calls = entries.flatMap(readEntry);
  if (calls.length === 0) return { content: list, calls };
  return { content: pythonStrip(before) === "" ? "" : before, calls };
}

function readEntry(entry: PyValue): VllmCall[] {
  if (!isPyDict(entry) || !(entry.has("name") || entry.has("arguments"))) return [];
  const name = entry.get("name");
  const value = entry.get("arguments") ?? null;
  const text = typeof value === "string" ? value : writeJson(value);
  return [
    { name: typeof name === "string" ? name : "", argumentsText: value === null ? "{}" : text },
  ];
}

/** The first JSON value of the arguments, unchanged; all of them if they do not begin with JSON. */
function firstValue(body: string): string {
  const text = pythonStrip(body);
  const end = catchPython(() => decodePythonJsonAt(text, 0).end, "JSONDecodeError");
  return text.slice(0, end ?? text.length);
}

const call = { to: "name", starts: true } as const;

const compact = engineReading({
  literals: [marker, argumentsMarker, "{", "[THINK]", "[/THINK]"],
  steps: {
    content: { [marker]: call, "[THINK]": { to: "reasoning" }, "[/THINK]": { to: "content" } },
    reasoning: { [marker]: call, "[THINK]": { to: "reasoning" }, "[/THINK]": { to: "content" } },
    name: { [argumentsMarker]: { to: "arguments" }, "{": { to: "arguments", keeps: true } },
    arguments: { [marker]: call },
  },
  allowsNoName: true,
  convertArguments: firstValue,
});

const current: EngineReading = {
  release: compact.release,
  read(text, context) {
    const [, first = ""] = text.split(marker, 2);
    return (isList(first, context) ? list : compact).read(text, context);
  },
};

const list = vllmReading({ release: old.release, extract: extractList });

/**
 * vLLM's parser for Mistral. The tokenizer decides how calls are written: with `[ARGS]` in the
 * vocabulary, `name{…}` after each marker, and otherwise one JSON list. Without a vocabulary, a
 * list is read if the text has one. Since 0.33 text after the arguments is lost.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/mistral_tool_parser.py` and, of 0.33,
 * `vllm/parser/mistral.py`.
 */
export const vllmMistral = byVersion(old, current);
