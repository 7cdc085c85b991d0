import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonError,
  type PyValue,
} from "../../../python-values/src/index.ts";
import { asName, type VllmCall } from "./vllm-reading.ts";
import { writeJson } from "../shared/json/write-json.ts";

/**
 * A decoded call as a dictionary.
 *
 * @throws PythonError `TypeError` if the value is not a dictionary.
 */
export function asEntry(value: PyValue): PyDict {
  if (isPyDict(value)) return value;
  throw new PythonError("TypeError", "a call must be an object");
}

/**
 * The call of an entry that must have a name and one of the fields for its arguments.
 *
 * @throws PythonError if one is absent, or if the name is not a string.
 */
export function callOfEntry(value: PyValue, ...fields: readonly string[]): VllmCall {
  const entry = asEntry(value);
  const field = fields.find((candidate) => entry.has(candidate));
  if (field === undefined) throw new PythonError("KeyError", fields.at(-1) ?? "");
  const written = entry.get(field) ?? null;
  const argumentsText = writeJson(written);
  return { name: asName(entry.get("name")), argumentsText };
}

/** The calls of a list. Entries without a name or arguments are left out. */
export function callsOfList(values: readonly PyValue[]): VllmCall[] {
  return values.flatMap((entry) => {
    if (!isPyDict(entry) || !entry.has("name") || !entry.has("arguments")) return [];
    const value = entry.get("arguments") ?? null;
    if (!isPyDict(value) && typeof value !== "string") {
      throw new PythonError("ValueError", "the arguments are neither an object nor a string");
    }
    const argumentsText = typeof value === "string" ? value : writeJson(value);
    return [{ name: asName(entry.get("name")), argumentsText }];
  });
}

/**
 * The entries of a list of calls, as Python iterates over it: an empty string or object has no
 * calls.
 *
 * @throws PythonError `TypeError` for anything else that is not a list.
 */
export function iterateCalls(value: PyValue): readonly PyValue[] {
  if (isPyList(value)) return value;
  if (value === "" || (isPyDict(value) && value.size === 0)) return [];
  throw new PythonError("TypeError", "the calls are not a list");
}
