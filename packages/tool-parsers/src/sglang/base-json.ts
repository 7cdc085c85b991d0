import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonError,
  pythonTruthy,
  pythonTypeName,
  type PyValue,
} from "../../../python-values/src/index.ts";
import { isSince } from "../engine-version.ts";
import type { ParseContext } from "../parse-context.ts";
import type { CompatCall } from "../tool-call-parser.ts";
import { sglangVersion } from "./sglang-version.ts";
import { writeJson } from "../shared/json/write-json.ts";

/**
 * Turns a decoded call, or a list of them, into calls as most of SGLang's JSON formats do. Unknown
 * names are dropped unless the request forwards them. `parameters` wins over `arguments` unless it
 * is falsy. The value is written as Python JSON, even if it is not an object.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/base_format_detector.py`.
 *
 * @throws PythonError if an entry is not an object (except in `next`), or if its name cannot be a
 *   key.
 */
export function parseBaseJson(action: PyValue, context: ParseContext): CompatCall[] {
  if (!isPyList(action)) return parseEntry(action, context);
  return action.flatMap((entry) => parseEntry(entry, context));
}

function parseEntry(entry: PyValue, context: ParseContext): CompatCall[] {
  if (!isPyDict(entry)) {
    if (sglangVersion(context) === "next") return [];
    const type = pythonTypeName(entry);
    throw new PythonError("AttributeError", `'${type}' object has no attribute 'get'`);
  }
  const name = entry.get("name") ?? null;
  const known = pythonTruthy(name) && isKnownName(name, context);
  if (!known && !forwardsUnknown(context)) return [];
  const argumentsText = writeJson(argumentsOfEntry(entry));
  if (name === null) return [{ name: "", argumentsText, toolIndex: -1 }];
  if (typeof name !== "string") {
    throw new PythonError("ValueError", "the name of a call is not a string");
  }
  return [{ name, argumentsText, toolIndex: baseToolIndex(name, context) }];
}

/** Turns a name and its arguments into calls, as `parseBaseJson()` does for a decoded call. */
export function callsNamed(name: string, value: PyValue, context: ParseContext): CompatCall[] {
  const entry = new Map([
    ["name", name],
    ["parameters", value],
  ]);
  return parseBaseJson(entry, context);
}

/** The arguments of a decoded call, as SGLang takes them. */
export function argumentsOfEntry(entry: PyDict): PyValue {
  const parameters = entry.get("parameters") ?? null;
  if (pythonTruthy(parameters)) return parameters;
  return entry.get("arguments") ?? (entry.has("arguments") ? null : new Map<string, PyValue>());
}

/** The position of the tool in the request; -1 in releases that do not report it. */
function baseToolIndex(name: string, context: ParseContext): number {
  const version = sglangVersion(context);
  const hidden = isSince(version, "0.4.9") && !isSince(version, "2026-05");
  return hidden ? -1 : (context.toolPositions.get(name) ?? -1);
}

/**
 * True if SGLang returns calls to unknown tools. This needs the setting `forwardUnknownTools` and a release since 0.5.6
 * (November 2025).
 */
export function forwardsUnknown(context: ParseContext): boolean {
  return context.forwardUnknownTools && isSince(sglangVersion(context), "0.5.6");
}

/**
 * True if the value is the name of a tool.
 *
 * @throws PythonError `TypeError` for a list or an object, which Python cannot hash.
 */
export function isKnownName(name: PyValue, context: ParseContext): name is string {
  if (isPyList(name) || isPyDict(name)) {
    throw new PythonError("TypeError", `unhashable type: '${pythonTypeName(name)}'`);
  }
  return typeof name === "string" && context.toolPositions.has(name);
}
