import { decodePythonJsonAt, parsePythonJson } from "../../python/json-parse.ts";
import { stringifyPythonJson } from "../../python/json-stringify.ts";
import { PythonError } from "../../python/python-error.ts";
import { pythonStrip } from "../../python/strip.ts";
import type { PyValue } from "../../python/value.ts";
import { isPyDict, isPyList } from "../../python/value.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../python-catch.ts";
import type { VllmCall, VllmExtraction } from "./vllm-reading.ts";
import { asName, vllmReading } from "./vllm-reading.ts";

const marker = "[TOOL_CALLS]";
const argumentsMarker = "[ARGS]";

function extract(text: string, { vocabulary }: ParseContext): VllmExtraction | undefined {
  const [before = "", ...parts] = text.split(marker);
  const [first] = parts;
  if (first === undefined) return undefined;
  const content = pythonStrip(before) === "" ? "" : before;
  const isOld =
    vocabulary.length === 0
      ? pythonStrip(first).startsWith("[")
      : !vocabulary.includes(argumentsMarker);
  if (!isOld) return { content, calls: parts.flatMap(readCompact) };
  if (parts.length > 1) throw new PythonError("ValueError", "[TOOL_CALLS] stands there twice");
  const list = pythonStrip(first);
  const entries =
    catchPython(() => decodePythonJsonAt(list, 0).value, "JSONDecodeError") ??
    catchPython(() => parsePythonJson(innermostList(list)), "JSONDecodeError");
  return entries === undefined
    ? { content: list, calls: [] }
    : { content, calls: readEntries(entries) };
}

/** Since tokenizer version 11: `name{…}`, with or without `[ARGS]`, whatever stands in the braces. */
function readCompact(part: string): VllmCall[] {
  const brace = part.indexOf("{");
  if (brace === -1) return [];
  const name = part.slice(0, brace).replaceAll(argumentsMarker, "");
  return [{ name, argumentsText: part.slice(brace) }];
}

/** From the first `[{` to the last `}]`. */
function innermostList(text: string): string {
  const start = text.indexOf("[{");
  const end = text.lastIndexOf("}]") + "}]".length;
  return start === -1 ? "" : text.slice(start, end);
}

/** @throws PythonError where an entry is no object with a name. */
function readEntries(entries: PyValue): VllmCall[] {
  if (!isPyList(entries)) throw new PythonError("TypeError", "the calls are no list");
  return entries.map((entry) => {
    if (!isPyDict(entry)) throw new PythonError("TypeError", "a call is no object");
    const value = entry.get("arguments");
    const argumentsText =
      value === undefined ? "{}" : stringifyPythonJson(value, { ensureAscii: false });
    return { name: asName(entry.get("name")), argumentsText };
  });
}

/**
 * vLLM's parser for Mistral. How calls are written follows from the tokenizer: with `[ARGS]` in the
 * vocabulary, `name{…}` after each marker, else one JSON list. Where the vocabulary is not known, a
 * list is read where one stands.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/mistral_tool_parser.py`.
 */
export const vllmMistral = vllmReading({
  release: { stops: [marker], strips: true, mayRewrite: true },
  extract,
});
