import type { LinearPattern } from "../pattern/compile-pattern.ts";
import { isPyDict, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import { patternOf, unusablePattern } from "./schema-pattern.ts";
import {
  fail,
  isCount,
  isSchema,
  isTextList,
  partAt,
  passOver,
  quietly,
  spendOnNames,
  type RuleCheck,
  type SchemaRule,
} from "./schema-rule.ts";

const aCount = { expected: "a whole number from 0 on", isUsable: isCount };
const aSchema = { expected: "a schema", isUsable: isSchema };
const anObject = { expected: "an object", isUsable: isPyDict };

const required: SchemaRule = {
  expected: "a list of names (of the object that has the property, not beside its type)",
  isUsable: isTextList,
  make(given) {
    const names = new Set(given as readonly string[]);
    return (check) => {
      const { value } = check;
      if (!isPyDict(value)) return true;
      spendOnNames(check, names.size);
      let fits = true;
      for (const name of names) {
        if (!value.has(name)) fits = fail(check, `must have required property '${name}'`);
      }
      return fits;
    };
  },
};

const minProperties: SchemaRule = {
  ...aCount,
  make: (given) => (check) =>
    !isPyDict(check.value) ||
    check.value.size >= (given as number) ||
    fail(check, `must NOT have fewer than ${given as number} properties`),
};

const maxProperties: SchemaRule = {
  ...aCount,
  make: (given) => (check) =>
    !isPyDict(check.value) ||
    check.value.size <= (given as number) ||
    fail(check, `must NOT have more than ${given as number} properties`),
};

const properties: SchemaRule = {
  ...anObject,
  make: (given) => (check) => {
    const { value } = check;
    if (!isPyDict(value)) return true;
    spendOnNames(check, (given as PyDict).size);
    let fits = true;
    for (const [name, schema] of given as PyDict) {
      const member = value.get(name);
      if (member === undefined) continue;
      check.evaluated?.addName(name);
      fits = check.run.apply(schema, partAt(check, name, member)) && fits;
    }
    return fits;
  },
};

/** The usable patterns of `patternProperties`, with their schemas. */
function usablePatterns(
  given: PyValue | undefined,
): readonly (readonly [LinearPattern, PyValue])[] {
  if (!isPyDict(given)) return [];
  return [...given].flatMap(([source, schema]) =>
    unusablePattern(source) === undefined ? [[patternOf(source), schema] as const] : [],
  );
}

const patternProperties: SchemaRule = {
  ...anObject,
  make(given) {
    const patterns = usablePatterns(given);
    const isWhole = patterns.length === (given as PyDict).size;
    return (check) => {
      if (!isPyDict(check.value)) return true;
      let fits: boolean = isWhole || passOver(check);
      for (const [pattern, schema] of patterns) {
        for (const [name, member] of check.value) {
          if (!pattern.test(name, check.run.budget)) continue;
          check.evaluated?.addName(name);
          fits = check.run.apply(schema, partAt(check, name, member)) && fits;
        }
      }
      return fits;
    };
  },
};

const additionalProperties: SchemaRule = {
  ...aSchema,
  make(given, schema) {
    const named = schema.get("properties");
    const patterns = schema.get("patternProperties");
    const usable = usablePatterns(patterns);
    // A name that an unusable pattern might allow must not be refused.
    const hasUnusable = isPyDict(patterns) && usable.length < patterns.size;
    if (hasUnusable || isOther(named) || isOther(patterns)) return passOver;
    return (check) => {
      if (!isPyDict(check.value)) return true;
      spendOnNames(check, check.value.size);
      let fits = true;
      for (const [name, member] of check.value) {
        if (isPyDict(named) && named.has(name)) continue;
        if (usable.some(([pattern]) => pattern.test(name, check.run.budget))) continue;
        check.evaluated?.addName(name);
        if (given === false) return fail(check, "must NOT have additional properties");
        fits = check.run.apply(given, partAt(check, name, member)) && fits;
      }
      return fits;
    };
  },
};

/** True for a value that is present and not an object. */
function isOther(given: PyValue | undefined): boolean {
  return given !== undefined && given !== null && !isPyDict(given);
}

const propertyNames: SchemaRule = {
  since: 6,
  ...aSchema,
  make: (given) => (check) => {
    if (!isPyDict(check.value)) return true;
    let fits = true;
    for (const name of check.value.keys()) {
      if (!check.run.apply(given, quietly(partAt(check, name, name))))
        fits = fail(check, `property name ${JSON.stringify(name)} must be valid`);
    }
    return fits;
  },
};

/** Requires members, or checks by a schema, if a member is present. */
function checkDependencies(given: PyDict): RuleCheck {
  return (check) => {
    const { value } = check;
    if (!isPyDict(value)) return true;
    spendOnNames(check, given.size);
    let fits = true;
    for (const [name, demand] of given) {
      if (!value.has(name)) continue;
      if (!isTextList(demand)) {
        fits = check.run.apply(demand, check) && fits;
        continue;
      }
      spendOnNames(check, demand.length);
      for (const other of demand) {
        if (value.has(other)) continue;
        fits = fail(check, `must have property ${other} when property ${name} is present`);
      }
    }
    return fits;
  };
}

const dependencies: SchemaRule = {
  until: 7,
  ...anObject,
  make: (given) => checkDependencies(given as PyDict),
};
const dependentRequired: SchemaRule = {
  since: 2019,
  expected: "an object of lists of names",
  isUsable: (given) => isPyDict(given) && [...given.values()].every(isTextList),
  make: (given) => checkDependencies(given as PyDict),
};
const dependentSchemas: SchemaRule = {
  since: 2019,
  ...anObject,
  make: (given) => checkDependencies(given as PyDict),
};

/** Keywords about the members of an object. */
export const objectRules: readonly (readonly [keyword: string, rule: SchemaRule])[] = [
  ["required", required],
  ["minProperties", minProperties],
  ["maxProperties", maxProperties],
  ["properties", properties],
  ["patternProperties", patternProperties],
  ["additionalProperties", additionalProperties],
  ["propertyNames", propertyNames],
  ["dependencies", dependencies],
  ["dependentRequired", dependentRequired],
  ["dependentSchemas", dependentSchemas],
];

/** `unevaluatedProperties`, which comes after all others. */
export const unevaluatedProperties: SchemaRule = {
  since: 2019,
  ...aSchema,
  make: (given) => (check) => {
    if (!isPyDict(check.value) || check.evaluated === undefined) return true;
    const { evaluated } = check;
    spendOnNames(check, check.value.size);
    let fits = true;
    for (const [name, member] of check.value) {
      if (evaluated.hasName(name)) continue;
      if (given === false) return fail(check, "must NOT have unevaluated properties");
      fits = check.run.apply(given, partAt(check, name, member)) && fits;
    }
    evaluated.addAllNames();
    return fits;
  },
};
