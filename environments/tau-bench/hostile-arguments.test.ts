import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { openTinyTau } from "./tiny-tau-bundle.fixture.ts";

const environments = await openTinyTau();
afterAll(() => environments[Symbol.asyncDispose]());

/** Values that get past the first checks, so that the later ones are reached too. */
const plausible: Readonly<Record<string, readonly PyValue[]>> = {
  order_id: ["#W1", "#W2", "#W3"],
  reason: ["no longer needed"],
  item_ids: [["101"], ["101", "102"], ["91"], "", [], new Map()],
  new_item_ids: [["103"], ["103", "101"], ["92"], "", [], new Map()],
  payment_method_id: ["gift_card_1", "credit_card_1", "paypal_2", "gift_card_2"],
  product_id: ["11", "9"],
  user_id: ["ann_lee_1", "cy_fox_3"],
  expression: ["1+1"],
  reservation_id: ["R00001", "HATHAT"],
  cabin: ["economy", "business"],
  flights: [[flight("F1")], [flight("F1"), flight("F2")], "", [], new Map()],
  passengers: [[new Map()], ["a"], "a", new Map([["a", 1n]])],
  payment_methods: [[payment("gift_card_3", 100n)], [payment("certificate_3", 100n)], "", []],
  nonfree_baggages: [0n, 1n, true, 1.5],
  total_baggages: [0n, 2n],
  insurance: ["no", "yes"],
  payment_id: ["gift_card_3", "credit_card_3", "certificate_3"],
  origin: ["AAA", "BBB"],
  destination: ["BBB", "CCC"],
  date: ["2024-05-09", "2024-05-10"],
};

function flight(number: string): PyDict {
  return new Map([
    ["flight_number", number],
    ["date", "2024-05-09"],
  ]);
}

function payment(id: string, amount: PyValue): PyDict {
  return new Map<string, PyValue>([
    ["payment_id", id],
    ["amount", amount],
  ]);
}

const key = fc.constantFrom("__proto__", "constructor", "10", "data", "a", "\ud83d", "price");
const scalar: fc.Arbitrary<PyValue> = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    Number.NaN,
    Infinity,
    -0,
    1e308,
    10n ** 30n,
    "\ud800",
    "__proto__",
  ),
  fc.bigInt({ min: -5n, max: 5n }),
  fc.double(),
  fc.string({ unit: "binary", maxLength: 5 }),
);
const hostile: fc.Arbitrary<PyValue> = fc.letrec<{ value: PyValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
  ),
})).value;

describe.each(["retail", "airline"] as const)("τ-bench %s under hostile arguments", (name) => {
  test("no call throws, or changes the shared data or another episode", async () => {
    const environment = environments[name];
    const untouched = environment.openTools();
    const initial = await untouched.hash();
    const call = fc.constantFrom(...environment.tools).chain((tool) => {
      const parameters = (tool.openai.get("function") as PyDict).get("parameters") as PyDict;
      const names = [...(parameters.get("properties") as PyDict).keys()];
      const values = names.map((parameter) =>
        fc.oneof(
          { arbitrary: fc.constantFrom<PyValue>(...(plausible[parameter] ?? ["x"])), weight: 4 },
          { arbitrary: hostile, weight: 1 },
        ),
      );
      const extra = fc.option(fc.tuple(key, hostile), { freq: 20, nil: undefined });
      return fc.tuple(fc.tuple(...values), extra).map(([given, more]) => ({
        name: tool.name,
        arguments: new Map<string, PyValue>([
          ...names.map((parameter, index) => [parameter, given[index] ?? null] as const),
          ...(more === undefined ? [] : [more]),
        ]),
      }));
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
        const toolbox = environment.openTools();
        for (const one of calls) {
          const outcome = toolbox.call(one);
          expect(["string", "object"]).toContain(typeof outcome?.observation);
        }
        await toolbox.hash();
        expect(await untouched.hash()).toBe(initial);
        expect(await environment.openTools().hash()).toBe(initial);
      }),
      { numRuns: 400 },
    );
  });

  test("changing a call's arguments later does not change the data", async () => {
    const toolbox = environments[name].openTools();
    const list: PyValue[] = ["a"];
    const call =
      name === "retail"
        ? {
            name: "modify_user_address",
            arguments: new Map<string, PyValue>([
              ["user_id", "ann_lee_1"],
              ...["address1", "address2", "city", "state", "country", "zip"].map(
                (part) => [part, list] as const,
              ),
            ]),
          }
        : {
            name: "update_reservation_passengers",
            arguments: new Map<string, PyValue>([
              ["reservation_id", "R00001"],
              ["passengers", list],
            ]),
          };
    expect(toolbox.call(call)?.observation).toContain('["a"]');
    const before = await toolbox.hash();
    list.push("b");
    expect(await toolbox.hash()).toBe(before);
  });

  test("values nested as deep as JSON may be are stored and printed", async () => {
    const toolbox = environments[name].openTools();
    const deep = parsePythonJson("[".repeat(900) + "]".repeat(900));
    const call =
      name === "retail"
        ? {
            name: "modify_pending_order_address",
            arguments: new Map<string, PyValue>([
              ["order_id", "#W1"],
              ["address1", deep],
              ...["address2", "city", "state", "country", "zip"].map((part) => [part, ""] as const),
            ]),
          }
        : {
            name: "update_reservation_passengers",
            arguments: new Map<string, PyValue>([
              ["reservation_id", "R00001"],
              ["passengers", deep],
            ]),
          };
    expect(toolbox.call(call)?.observation).toContain("[".repeat(900));
    expect(await toolbox.hash()).toMatch(/^[0-9a-f]{64}$/);
  });
});
