import { briefText, briefValue } from "../../src/environment/brief-value.ts";
import type { DifferenceCall } from "../../src/environment/state/difference.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";

/** A call that an episode made. */
export interface MadeCall {
  readonly name: string;
  readonly arguments: PyDict;
  /** The tool's answer, if it refused. */
  readonly error?: string;
}

/** The wanted calls and the actual calls. */
interface CallsToCompare {
  readonly wanted: readonly { readonly name: string; readonly kwargs: PyDict }[];
  readonly made: readonly MadeCall[];
  /** The arguments of these tools are free text: only the name counts. */
  readonly terminatingTools: ReadonlySet<string>;
}

/** Tools of both domains that change no state. */
const readingTools = /^(?:get|find|list|search)_|^(?:calculate|think)$/;

/** Compares calls by name and arguments, in any order. Each actual call matches at most one wanted call. */
export function callDifference({ wanted, made, terminatingTools }: CallsToCompare): {
  readonly missingCalls: readonly DifferenceCall[];
  readonly extraCalls: readonly DifferenceCall[];
} {
  const missingCalls: DifferenceCall[] = [];
  const matched = new Set<MadeCall>();
  for (const { name, kwargs } of wanted) {
    const isAsWanted = (call: MadeCall): boolean =>
      call.name === name && (terminatingTools.has(name) || isSame(call.arguments, kwargs));
    const call = made.find((candidate) => !matched.has(candidate) && isAsWanted(candidate));
    if (call === undefined) missingCalls.push({ name, argumentsText: textOf(kwargs) });
    else matched.add(call);
  }
  const extraCalls = made
    .filter((call) => !matched.has(call) && !readingTools.test(call.name))
    .map(({ name, arguments: given, error }) => ({
      name,
      argumentsText: textOf(given),
      ...(error !== undefined && { error: briefText(error) }),
    }));
  return { missingCalls, extraCalls };
}

function textOf(given: PyDict): string {
  return stringifyPythonJson(briefValue(given), { ensureAscii: false });
}

/** True if two values are equal, types included; the order of dictionaries does not matter. */
function isSame(left: PyValue, right: PyValue): boolean {
  if (isPyDict(left) && isPyDict(right)) {
    return (
      left.size === right.size &&
      [...right].every(([key, member]) => {
        const other = left.get(key);
        return other !== undefined && isSame(other, member);
      })
    );
  }
  if (isPyList(left) && isPyList(right)) {
    return left.length === right.length && right.every((item, i) => isSame(left[i] ?? null, item));
  }
  return Object.is(left, right);
}
