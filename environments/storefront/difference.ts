import type {
  Difference,
  DifferenceCall,
  StateDifference,
} from "../../src/environment/difference.ts";
import { stringifyPythonJson } from "../../src/python/json-stringify.ts";
import type { PyDict } from "../../src/python/value.ts";
import type { Goal } from "./goal.ts";
import type { Order, Shop } from "./shop.ts";

/** What can differ in an order. */
const changeable = ["status", "address", "items", "returnedIds"] as const satisfies (keyof Order)[];

/** Tools that change nothing. */
const readingTools = /^(?:find|get)_/;

/** What lies between the shop as it is and as the goals want it, and how that came. */
export function shopDifference(
  { reached, wanted }: { readonly reached: Shop; readonly wanted: Shop },
  goals: readonly Goal[],
  {
    calls,
    missingOutputs,
  }: { readonly calls: readonly DifferenceCall[]; readonly missingOutputs: readonly string[] },
): Difference {
  const wantedCalls = goals.flatMap(({ end }) =>
    end.type === "done"
      ? [toDifferenceCall(end.call.name, new Map(Object.entries(end.call.arguments)))]
      : [],
  );
  const isSame = (left: DifferenceCall) => (right: DifferenceCall) =>
    left.name === right.name && left.argumentsText === right.argumentsText;
  return {
    state: [...wanted.orders.entries()].flatMap(([id, order]) =>
      orderDifference(id, reached.orders.get(id), order),
    ),
    missingCalls: wantedCalls.filter((call) => !calls.some(isSame(call))),
    extraCalls: calls.filter(
      (call) => !readingTools.test(call.name) && !wantedCalls.some(isSame(call)),
    ),
    missingOutputs,
  };
}

/** A call as differences show it: the arguments in the order of their names. */
export function toDifferenceCall(name: string, given: PyDict, error?: string): DifferenceCall {
  const sorted = [...given].toSorted(([left], [right]) => (left < right ? -1 : 1));
  const argumentsText = stringifyPythonJson(new Map(sorted), { ensureAscii: false });
  return { name, argumentsText, ...(error === undefined ? {} : { error }) };
}

function orderDifference(id: string, got: Order | undefined, wanted: Order): StateDifference[] {
  return changeable
    .filter((field) => JSON.stringify(got?.[field]) !== JSON.stringify(wanted[field]))
    .map((field) => ({
      table: "orders",
      record: id,
      field,
      wanted: wanted[field],
      got: got?.[field],
    }));
}
