import type {
  Difference,
  DifferenceCall,
  StateDifference,
} from "../../src/environment/state/difference.ts";
import { briefText, briefValue } from "../../src/environment/brief-value.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { Goal, WriteCall } from "./goal.ts";
import { changeable, isSameIn, type Order, type Shop } from "./shop.ts";

/** A call that an episode made. */
export interface MadeCall {
  readonly name: string;
  readonly arguments: PyDict;
  /** The tool's answer, if it refused. */
  readonly error?: string;
}

/** Names of tools that change no state. */
const readingTools = /^(?:find|get)_/;

/** Returns the difference between the shop and the goals' wanted shop, and the calls that caused it. */
export function shopDifference(
  { reached, wanted }: { readonly reached: Shop; readonly wanted: Shop },
  goals: readonly Goal[],
  {
    stateMatches,
    calls,
    missingOutputs,
  }: {
    /** The result of `isSameState()` for the two shops. */
    readonly stateMatches: boolean;
    readonly calls: readonly MadeCall[];
    readonly missingOutputs: readonly string[];
  },
): Difference {
  const wantedCalls = goals.flatMap(({ end }) => (end.type === "done" ? [end.call] : []));
  return {
    state: stateMatches
      ? []
      : [...wanted.orders.entries()].flatMap(([id, order]) =>
          orderDifference(id, reached.orders.get(id), order),
        ),
    missingCalls: wantedCalls
      .filter((wantedCall) => !calls.some((call) => isSame(call, wantedCall)))
      .map((call) => toDifferenceCall({ ...call, arguments: toDict(call) })),
    extraCalls: calls
      .filter(
        (call) =>
          !readingTools.test(call.name) &&
          !wantedCalls.some((wantedCall) => isSame(call, wantedCall)),
      )
      .map(toDifferenceCall),
    missingOutputs,
  };
}

function isSame({ name, arguments: given }: MadeCall, wanted: WriteCall): boolean {
  if (name !== wanted.name) return false;
  const keys = Object.keys(wanted.arguments);
  return (
    given.size === keys.length && keys.every((key) => given.get(key) === wanted.arguments[key])
  );
}

function toDict({ arguments: given }: WriteCall): PyDict {
  return new Map(Object.entries<PyValue>(given));
}

/** A call for a difference: arguments are sorted by name. */
function toDifferenceCall({ name, arguments: given, error }: MadeCall): DifferenceCall {
  const brief = [...(briefValue(given) as PyDict)];
  const sorted = brief.toSorted(([left], [right]) => (left < right ? -1 : 1));
  const argumentsText = stringifyPythonJson(new Map(sorted), { ensureAscii: false });
  return { name, argumentsText, ...(error !== undefined && { error: briefText(error) }) };
}

function orderDifference(id: string, got: Order | undefined, wanted: Order): StateDifference[] {
  // Records are shared: most orders are the same object in both shops.
  if (got === wanted) return [];
  return changeable
    .filter((field) => !isSameIn(field, got, wanted))
    .map((field) => ({
      table: "orders",
      record: id,
      field,
      wanted: wanted[field],
      got: briefly(got?.[field]),
    }));
}

/** Shortens an address, which the policy wrote. */
function briefly<Value>(value: Value): Value | string {
  return typeof value === "string" ? briefText(value) : value;
}
