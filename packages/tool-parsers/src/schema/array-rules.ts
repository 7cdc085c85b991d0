import { isPyList, type PyValue } from "../../../python-values/src/index.ts";
import { canonicalText } from "./canonical-text.ts";
import {
  fail,
  isCount,
  isSchema,
  partAt,
  quietly,
  spendOnNames,
  surelyFits,
  type RuleCheck,
  type SchemaCheck,
  type SchemaRule,
} from "./schema-rule.ts";

const aCount = { expected: "a whole number from 0 on", isUsable: isCount };
const aSchema = { expected: "a schema", isUsable: isSchema };
const schemas = {
  expected: "a list of schemas",
  isUsable: (given: PyValue) => isPyList(given) && given.every(isSchema),
};

/** Checks the items at the first indexes, each by its own schema. */
function checkTuple(tuple: readonly PyValue[]): RuleCheck {
  return (check) => {
    if (!isPyList(check.value)) return true;
    let fits = true;
    for (const [index, schema] of tuple.entries()) {
      if (index >= check.value.length) break;
      check.evaluated?.addIndex(index);
      fits = check.run.apply(schema, partAt(check, index, check.value[index] as PyValue)) && fits;
    }
    return fits;
  };
}

/** Checks all items from an index on by one schema. */
function checkRest(schema: PyValue, start: number): RuleCheck {
  return (check) => {
    if (!isPyList(check.value)) return true;
    check.evaluated?.addAllIndexes();
    if (schema === false && check.value.length > start) {
      return fail(check, `must NOT have more than ${start} items`);
    }
    let fits = true;
    for (let index = start; index < check.value.length; index++) {
      fits = check.run.apply(schema, partAt(check, index, check.value[index] as PyValue)) && fits;
    }
    return fits;
  };
}

const prefixItems: SchemaRule = {
  since: 2020,
  ...schemas,
  make: (given) => checkTuple(given as readonly PyValue[]),
};

const items: SchemaRule = {
  expected: "a schema, or until draft 2019-09 a list of schemas",
  isUsable: (given) => isSchema(given) || schemas.isUsable(given),
  make(given, schema, { draft }) {
    if (isPyList(given)) return checkTuple(given);
    const prefix = draft === undefined || draft >= 2020 ? schema.get("prefixItems") : undefined;
    return checkRest(given, isPyList(prefix) ? prefix.length : 0);
  },
};

const additionalItems: SchemaRule = {
  until: 2019,
  ...aSchema,
  make(given, schema) {
    const tuple = schema.get("items");
    return isPyList(tuple) ? checkRest(given, tuple.length) : () => true;
  },
};

const minItems: SchemaRule = {
  ...aCount,
  make: (given) => (check) =>
    !isPyList(check.value) ||
    check.value.length >= (given as number) ||
    fail(check, `must NOT have fewer than ${given as number} items`),
};

const maxItems: SchemaRule = {
  ...aCount,
  make: (given) => (check) =>
    !isPyList(check.value) ||
    check.value.length <= (given as number) ||
    fail(check, `must NOT have more than ${given as number} items`),
};

const uniqueItems: SchemaRule = {
  expected: "true or false",
  isUsable: (given) => typeof given === "boolean",
  make: (given) => (check) =>
    given === false ||
    !isPyList(check.value) ||
    areDifferent(check.value, check) ||
    fail(check, "must NOT have duplicate items"),
};

function areDifferent(values: readonly PyValue[], { run }: SchemaCheck): boolean {
  return new Set(values.map((item) => canonicalText(item, run.budget))).size === values.length;
}

const contains: SchemaRule = {
  since: 6,
  ...aSchema,
  make(given, schema, { draft }) {
    const hasBounds = draft === undefined || draft >= 2019;
    const least = hasBounds ? schema.get("minContains") : undefined;
    const most = hasBounds ? schema.get("maxContains") : undefined;
    const min = isCount(least) ? Number(least) : 1;
    const max = isCount(most) ? Number(most) : Infinity;
    const isLookedAt = draft === undefined || draft >= 2020;
    return (check) => {
      if (!isPyList(check.value)) return true;
      let count = 0;
      let unsureCount = 0;
      for (const [index, item] of check.value.entries()) {
        const fits = surelyFits(given, quietly(partAt(check, index, item)));
        if (fits === false) continue;
        count += 1;
        if (fits === undefined) unsureCount += 1;
        if (isLookedAt) check.evaluated?.addIndex(index);
      }
      if (count >= min && count - unsureCount <= max) return true;
      const upTo = max === Infinity ? "" : ` and no more than ${max}`;
      return fail(check, `must contain at least ${min}${upTo} valid item(s)`);
    };
  },
};

/** The rule of the bounds that `contains` reads. This rule only checks that the bounds are usable. */
const containsBound: SchemaRule = { since: 2019, ...aCount, make: () => () => true };

/** Keywords about the items of a list. */
export const arrayRules: readonly (readonly [keyword: string, rule: SchemaRule])[] = [
  ["minItems", minItems],
  ["maxItems", maxItems],
  ["uniqueItems", uniqueItems],
  ["prefixItems", prefixItems],
  ["items", items],
  ["additionalItems", additionalItems],
  ["contains", contains],
  ["minContains", containsBound],
  ["maxContains", containsBound],
];

/** `unevaluatedItems`, which comes after all others. */
export const unevaluatedItems: SchemaRule = {
  since: 2019,
  ...aSchema,
  make: (given) => (check) => {
    if (!isPyList(check.value) || check.evaluated === undefined) return true;
    const { evaluated } = check;
    spendOnNames(check, check.value.length);
    let fits = true;
    for (const [index, item] of check.value.entries()) {
      if (evaluated.hasIndex(index)) continue;
      if (given === false) return fail(check, "must NOT have unevaluated items");
      fits = check.run.apply(given, partAt(check, index, item)) && fits;
    }
    evaluated.addAllIndexes();
    return fits;
  },
};
