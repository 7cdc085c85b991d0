import { isPyDict, type PyDict, type PyValue } from "../../../packages/python-values/src/value.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import { shorten } from "../../secrets/shorten.ts";
import {
  alternativesIn,
  countIn,
  deepestSchema,
  fittingValue,
  listIn,
  mostItems,
  propertiesIn,
  typesIn,
} from "./fitting-value.ts";
import { formatCount } from "../../text/format-count.ts";

/** A value for an argument, and its description in reports. */
export type TriedValue = readonly [what: string, value: PyValue];

/** Values that models write as arguments of any type. */
const usualValues: readonly TriedValue[] = [
  ["null", null],
  ["true", true],
  ["an empty text", ""],
  ["a text of 100,000 characters", "x".repeat(100_000)],
  ["a lone surrogate", "\ud800"],
  ["__proto__", "__proto__"],
  ["-1", -1n],
  ["0.5", 0.5],
  ["infinity", Infinity],
  ["NaN", NaN],
  ["2^70", 2n ** 70n],
  ["an empty list", []],
  ["a list", ["x", 1n, null]],
  ["an empty object", new Map()],
  ["a nested object", new Map([["a", new Map([["b", [new Map()]]])]])],
  ["lists 250 deep", nestedLists(250)],
];

function nestedLists(depth: number): PyValue {
  return depth === 0 ? [] : [nestedLists(depth - 1)];
}

/** The most members of an enum that are tried. */
const mostChoices = 50;

/** The number of items of a long list. */
const manyItems = 1_000;

/** Returns the values that are tried for an argument: usual mistakes, and those at the limits of its schema. */
export function triedValues(schema: PyValue | undefined): readonly TriedValue[] {
  const byName = new Map<string, TriedValue>();
  for (const one of [...usualValues, ...limitValues(schema, 0)]) {
    if (!byName.has(one[0])) byName.set(one[0], one);
  }
  return [...byName.values()];
}

/** Returns the values at the limits of a schema, inside and outside of them. */
function limitValues(schema: PyValue | undefined, depth: number): readonly TriedValue[] {
  if (!isPyDict(schema) || depth > deepestSchema) return [];
  const choices = listIn(schema, "enum");
  if (choices.length > 0) return choiceValues(choices);
  const alternatives = alternativesIn(schema);
  if (alternatives.length > 0) return alternatives.flatMap((each) => limitValues(each, depth));
  return typesIn(schema).flatMap((type) => valuesOfType(type, schema, depth));
}

function valuesOfType(type: PyValue, schema: PyDict, depth: number): readonly TriedValue[] {
  switch (type) {
    case "integer":
      return [...boundValues(schema), ...wholeNumbers];
    case "number":
      return [...boundValues(schema), ...numbers];
    case "string":
      return [...sizesAround(schema, "Length").map(sizedText), ...texts];
    case "array":
      return listValues(schema, depth);
    case "object":
      return objectValues(schema, depth);
    case "boolean":
      return [["false", false]];
    default:
      return [];
  }
}

function choiceValues(choices: readonly PyValue[]): readonly TriedValue[] {
  const shown = choices.slice(0, mostChoices).map((choice) => shownValue(choice));
  const [first] = choices;
  const otherCase =
    typeof first === "string"
      ? [shownValue(first === first.toUpperCase() ? first.toLowerCase() : first.toUpperCase())]
      : [];
  return [...shown, ...otherCase, shownValue("no such choice")];
}

const wholeNumbers: readonly TriedValue[] = [
  ["0", 0n],
  ["1.0", 1],
  ["2^31", 2n ** 31n],
  ["2^53 + 1", 2n ** 53n + 1n],
  ["-2^63 - 1", -(2n ** 63n) - 1n],
  ["10^100", 10n ** 100n],
];

const numbers: readonly TriedValue[] = [
  ["0", 0n],
  ["-0.0", -0],
  ["1e308", 1e308],
  ["-1e308", -1e308],
  ["5e-324", 5e-324],
];

const texts: readonly TriedValue[] = [
  ["a space", " "],
  ["letters of several scripts", "é ß 漢字 עברית 😀 👩‍👩‍👧"],
  ["line ends and quotes", "a\nb\r\n\t\"'\\`{}%s"],
  ["digits", "007"],
];

/** Returns each bound of a number, and the numbers below and above it. */
function boundValues(schema: PyDict): readonly TriedValue[] {
  return ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].flatMap((keyword) => {
    const bound = schema.get(keyword);
    if (typeof bound === "bigint") return [bound - 1n, bound, bound + 1n].map(shownValue);
    if (typeof bound === "number") return [bound - 1, bound, bound + 1].map(shownValue);
    return [];
  });
}

/** Returns the sizes around the two limits of a text or a list. */
function sizesAround(schema: PyDict, what: "Length" | "Items"): readonly number[] {
  const limits = [countIn(schema, `min${what}`), countIn(schema, `max${what}`)];
  const sizes = limits.flatMap((limit) =>
    limit === undefined ? [] : [limit - 1, limit, limit + 1].filter((size) => size >= 0),
  );
  return [...new Set(sizes)];
}

function sizedText(size: number): TriedValue {
  return [`a text of ${formatCount(size)} characters`, "x".repeat(size)];
}

function listValues(schema: PyDict, depth: number): readonly TriedValue[] {
  const items = schema.get("items");
  const item = fittingValue(items, depth + 1);
  const sizes = [...sizesAround(schema, "Items"), manyItems].filter(
    (size) => size <= mostItems(item),
  );
  return [
    ...sizes.map((size): TriedValue => [
      `a list of ${formatCount(size)} items`,
      new Array<PyValue>(size).fill(item),
    ]),
    ["[null]", [null]],
    ...limitValues(items, depth + 1).map(([what, value]): TriedValue => [`[${what}]`, [value]]),
  ];
}

function objectValues(schema: PyDict, depth: number): readonly TriedValue[] {
  const whole = fittingValue(schema, depth);
  if (!isPyDict(whole)) return [];
  return [...propertiesIn(schema)].flatMap(([name, each]): readonly TriedValue[] => [
    [`an object without ${name}`, without(whole, name)],
    [`an object with ${name}: null`, new Map([...whole, [name, null]])],
    ...limitValues(each, depth + 1).map(([what, value]): TriedValue => [
      `an object with ${name}: ${what}`,
      new Map([...whole, [name, value]]),
    ]),
  ]);
}

/** Returns a copy of an object without one of its members. */
export function without(given: PyDict, name: string): PyDict {
  return new Map([...given].filter(([other]) => other !== name));
}

/** Returns a value with its JSON as description. */
function shownValue(value: PyValue): TriedValue {
  return [shorten(writeCompactJson(value), 60), value];
}
