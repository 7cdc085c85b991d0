import { isPyList, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import type { SchemaDocument, Target } from "./schema-document.ts";
import {
  fail,
  failAll,
  isSchema,
  isText,
  passOver,
  quietly,
  surelyFits,
  type Mismatch,
  type RuleCheck,
  type SchemaRule,
} from "./schema-rule.ts";

const aSchema = { expected: "a schema", isUsable: isSchema };
const schemas = {
  expected: "a list of schemas",
  isUsable: (given: PyValue) => isPyList(given) && given.length > 0 && given.every(isSchema),
};

const allOf: SchemaRule = {
  ...schemas,
  make: (given) => (check) => {
    let fits = true;
    for (const schema of given as readonly PyValue[]) fits = check.run.apply(schema, check) && fits;
    return fits;
  },
};

const anyOf: SchemaRule = {
  ...schemas,
  make: (given) => (check) => {
    const { evaluated } = check;
    const mismatches: Mismatch[] | undefined = check.mismatches && [];
    let fits = false;
    for (const schema of given as readonly PyValue[]) {
      fits = check.run.apply(schema, { ...check, mismatches }) || fits;
      // Each branch that fits may evaluate other parts.
      if (fits && evaluated === undefined) return true;
    }
    if (fits) return true;
    failAll(check, mismatches);
    return fail(check, "must match a schema in anyOf");
  },
};

const oneOf: SchemaRule = {
  ...schemas,
  make: (given) => (check) => {
    const mismatches: Mismatch[] | undefined = check.mismatches && [];
    let count = 0;
    let isSure = true;
    for (const schema of given as readonly PyValue[]) {
      const fits = surelyFits(schema, { ...check, mismatches });
      if (fits === undefined) isSure = false;
      if (fits !== false) count += 1;
    }
    if (count === 1 || (count > 1 && !isSure)) return true;
    if (count === 0) failAll(check, mismatches);
    return fail(check, "must match exactly one schema in oneOf");
  },
};

const not: SchemaRule = {
  ...aSchema,
  make: (given) => (check) =>
    surelyFits(given, quietly(check)) !== true || fail(check, "must NOT be valid"),
};

const condition: SchemaRule = {
  since: 7,
  ...aSchema,
  make(given, schema) {
    return (check) => {
      const fits = surelyFits(given, quietly(check));
      if (fits === undefined) return passOver(check);
      const branch = fits ? "then" : "else";
      const chosen = schema.get(branch);
      if (chosen === undefined || chosen === null || check.run.apply(chosen, check)) return true;
      return fail(check, `must match "${branch}" schema`);
    };
  },
};
/** The rule of `then` and `else`, which `if` reads. This rule only checks that the branches are usable. */
const branch: SchemaRule = { since: 7, ...aSchema, make: () => () => true };

/** Checks by the schema of a reference, which is resolved at the first check. */
function checkTarget(find: () => Target): RuleCheck {
  let target: Target | undefined;
  return (check) => {
    target ??= find();
    return "problem" in target ? passOver(check) : check.run.apply(target.schema, check);
  };
}

/** Makes the rule for a keyword that refers to another part. */
function reference(
  find: (document: SchemaDocument, schema: PyDict, given: string) => Target,
): Pick<SchemaRule, "expected" | "isUsable" | "make"> {
  return {
    expected: "a text",
    isUsable: isText,
    make: (given, schema, document) => checkTarget(() => find(document, schema, given as string)),
  };
}

const plainReference = reference((document, schema, given) => document.follow(schema, given));
const dynamicReference = reference((document, schema, given) =>
  document.followDynamic(schema, given),
);

/** Keywords that combine schemas, and those that refer to others. */
export const combiningRules: readonly (readonly [keyword: string, rule: SchemaRule])[] = [
  ["$ref", plainReference],
  ["$dynamicRef", { since: 2020, ...dynamicReference }],
  ["$recursiveRef", { since: 2019, until: 2019, ...dynamicReference }],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["if", condition],
  ["then", branch],
  ["else", branch],
];
