import { isPyDict, isPyList, type PyValue } from "../../../python-values/src/index.ts";
import { canonicalText } from "./canonical-text.ts";
import { isMultipleOf } from "./decimal.ts";
import { patternOf, unusablePattern } from "./schema-pattern.ts";
import {
  fail,
  isCount,
  isNumber,
  isText,
  type SchemaCheck,
  type SchemaRule,
} from "./schema-rule.ts";

const types: ReadonlyMap<string, (value: PyValue) => boolean> = new Map([
  ["string", isText],
  ["boolean", (value: PyValue) => typeof value === "boolean"],
  ["integer", (value: PyValue) => isNumber(value) && isWhole(value)],
  ["number", isNumber],
  ["array", isPyList],
  ["object", isPyDict],
  ["null", (value: PyValue) => value === null],
]);

function isWhole(value: bigint | number): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}

const type: SchemaRule = {
  expected: `one of ${[...types.keys()].join(", ")}, or a list of them`,
  isUsable: (given) =>
    (isPyList(given) ? given : [given]).every((name) => isText(name) && types.has(name)),
  make(given) {
    const names = (isPyList(given) ? given : [given]) as readonly string[];
    const tests = names.map((name) => types.get(name) as (value: PyValue) => boolean);
    return (check) =>
      tests.some((isOfType) => isOfType(check.value)) || fail(check, `must be ${names.join()}`);
  },
};

const enumeration: SchemaRule = {
  expected: "a list",
  isUsable: isPyList,
  make(given) {
    const choices = given as readonly PyValue[];
    const texts = new Set(choices.map((choice) => canonicalText(choice)));
    return (check) =>
      texts.has(canonicalText(check.value, check.run.budget)) ||
      fail(check, "must be equal to one of the allowed values", choices);
  },
};

const constant: SchemaRule = {
  since: 6,
  expected: "a value",
  isUsable: () => true,
  make(given) {
    const text = canonicalText(given);
    return (check) =>
      canonicalText(check.value, check.run.budget) === text ||
      fail(check, "must be equal to constant", [given]);
  },
};

/** Makes the rule of a lower or upper limit, on a number or on a count. */
function bound(
  measure: (check: SchemaCheck) => bigint | number | undefined,
  isWithin: (measured: bigint | number, limit: bigint | number) => boolean,
  describe: (limit: bigint | number) => string,
): Pick<SchemaRule, "make"> {
  return {
    make: (given) => (check) => {
      const measured = measure(check);
      const limit = given as bigint | number;
      const fits = measured === undefined || isWithin(measured, limit);
      return fits || fail(check, describe(limit));
    },
  };
}

const numberOf = ({ value }: SchemaCheck) => (isNumber(value) ? value : undefined);
/** A limit may be infinite, as `1e400` is: then every number is within it, or none. */
const isLimit = (given: PyValue | undefined): boolean =>
  typeof given === "bigint" || (typeof given === "number" && !Number.isNaN(given));
const aNumber = { expected: "a number", isUsable: isLimit };

const minimum: SchemaRule = {
  ...aNumber,
  make: (given, schema, document) =>
    schema.get("exclusiveMinimum") === true
      ? exclusiveMinimum.make(given, schema, document)
      : least.make(given, schema, document),
};
const maximum: SchemaRule = {
  ...aNumber,
  make: (given, schema, document) =>
    schema.get("exclusiveMaximum") === true
      ? exclusiveMaximum.make(given, schema, document)
      : most.make(given, schema, document),
};

const least = bound(
  numberOf,
  (value, limit) => value >= limit,
  (limit) => `must be >= ${limit}`,
);
const most = bound(
  numberOf,
  (value, limit) => value <= limit,
  (limit) => `must be <= ${limit}`,
);
const isFlag = (given: PyValue, other: PyValue | undefined): boolean =>
  typeof given === "boolean" && (other === undefined || isNumber(other));

const exclusiveMinimum: SchemaRule = {
  expected: "a number, or in draft 4 a flag beside minimum",
  isUsable: (given, schema) => isLimit(given) || isFlag(given, schema.get("minimum")),
  make: (given, schema, document) =>
    typeof given === "boolean" ? () => true : above.make(given, schema, document),
};
const exclusiveMaximum: SchemaRule = {
  expected: "a number, or in draft 4 a flag beside maximum",
  isUsable: (given, schema) => isLimit(given) || isFlag(given, schema.get("maximum")),
  make: (given, schema, document) =>
    typeof given === "boolean" ? () => true : below.make(given, schema, document),
};
const above = bound(
  numberOf,
  (value, limit) => value > limit,
  (limit) => `must be > ${limit}`,
);
const below = bound(
  numberOf,
  (value, limit) => value < limit,
  (limit) => `must be < ${limit}`,
);

const multipleOf: SchemaRule = {
  expected: "a number above 0",
  isUsable: (given) => isNumber(given) && given > 0,
  make: (given) => (check) =>
    !isNumber(check.value) ||
    isMultipleOf(check.value, given as number) ||
    fail(check, `must be multiple of ${given as number}`),
};

const aCount = { expected: "a whole number from 0 on", isUsable: isCount };
function lengthOf(check: SchemaCheck): number | undefined {
  if (!isText(check.value)) return undefined;
  check.run.budget.spend(check.value.length >>> 5);
  return countCharacters(check.value);
}

function countCharacters(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    if ((text.codePointAt(index) ?? 0) > 0xffff) index += 1;
    count += 1;
  }
  return count;
}

const minLength: SchemaRule = {
  ...aCount,
  ...bound(
    lengthOf,
    (length, limit) => length >= limit,
    (limit) => `must NOT have fewer than ${limit} characters`,
  ),
};
const maxLength: SchemaRule = {
  ...aCount,
  ...bound(
    lengthOf,
    (length, limit) => length <= limit,
    (limit) => `must NOT have more than ${limit} characters`,
  ),
};

const pattern: SchemaRule = {
  expected: "a pattern that JavaScript or Python reads and linear time allows",
  isUsable: (given) => isText(given) && unusablePattern(given) === undefined,
  make(given) {
    const compiled = patternOf(given as string);
    return (check) =>
      !isText(check.value) ||
      compiled.test(check.value, check.run.budget) ||
      fail(check, `must match pattern "${given as string}"`);
  },
};

/** Keywords about a complete value, in the order of their messages. */
export const valueRules: readonly (readonly [keyword: string, rule: SchemaRule])[] = [
  ["type", type],
  ["enum", enumeration],
  ["const", constant],
  ["minimum", minimum],
  ["maximum", maximum],
  ["exclusiveMinimum", exclusiveMinimum],
  ["exclusiveMaximum", exclusiveMaximum],
  ["multipleOf", multipleOf],
  ["minLength", minLength],
  ["maxLength", maxLength],
  ["pattern", pattern],
];
