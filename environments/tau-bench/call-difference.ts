import type { DifferenceCall } from "../../src/environment/difference.ts";
import { stringifyPythonJson } from "../../src/python/json-stringify.ts";
import type { PyDict } from "../../src/python/value.ts";
import { hashableText } from "./database-text.ts";

/** A call that an episode made. */
export interface MadeCall {
  readonly name: string;
  readonly arguments: PyDict;
  /** What the tool answered, where it refused. */
  readonly error?: string;
}

/** What was to be called, and what was. */
export interface CallsToCompare {
  readonly wanted: readonly { readonly name: string; readonly kwargs: PyDict }[];
  readonly made: readonly MadeCall[];
  /** Their arguments are free text: only the name counts. */
  readonly terminatingTools: ReadonlySet<string>;
}

/** The tools of both domains that change nothing. */
const readingTools = /^(?:get|find|list|search)_|^(?:calculate|think)$/;

/** Compares calls by name and arguments, each made call standing for one wanted call; in any order. */
export function callDifference({ wanted, made, terminatingTools }: CallsToCompare): {
  readonly missingCalls: readonly DifferenceCall[];
  readonly extraCalls: readonly DifferenceCall[];
} {
  const keyOf = (name: string, given: PyDict) =>
    terminatingTools.has(name) ? name : `${name} ${hashableText(given)}`;
  const open = new Map<string, MadeCall[]>();
  for (const call of made) {
    const key = keyOf(call.name, call.arguments);
    open.set(key, [...(open.get(key) ?? []), call]);
  }
  const missingCalls: DifferenceCall[] = [];
  const matched = new Set<MadeCall>();
  for (const { name, kwargs } of wanted) {
    const call = open.get(keyOf(name, kwargs))?.shift();
    if (call === undefined) missingCalls.push({ name, argumentsText: textOf(kwargs) });
    else matched.add(call);
  }
  const extraCalls = made
    .filter((call) => !matched.has(call) && !readingTools.test(call.name))
    .map(({ arguments: given, ...call }) => ({ ...call, argumentsText: textOf(given) }));
  return { missingCalls, extraCalls };
}

function textOf(given: PyDict): string {
  return stringifyPythonJson(given, { ensureAscii: false });
}
