import type { StepBudget } from "../pattern/step-budget.ts";
import { isPyDict, isPyList, type PyDict, type PyValue } from "../python/value.ts";
import type { EvaluatedParts } from "./evaluated-parts.ts";
import type { SchemaDocument } from "./schema-document.ts";
import type { SchemaDraft } from "./schema-draft.ts";

/** A place in a value, as a way back to the whole. */
interface ValuePlace {
  readonly parent: ValuePlace | undefined;
  readonly key: string | number;
}

/** One thing in a value that does not fit. */
export interface Mismatch {
  /** Keys and indexes that lead to it; empty for the value as a whole. */
  readonly path: readonly (string | number)[];
  /** For a person or a model, such as `must be integer`. */
  readonly message: string;
  /** The values that are allowed, where these can be listed. */
  readonly choices?: readonly PyValue[];
}

/** State that all parts of one check share. */
export interface SchemaRun {
  readonly budget: StepBudget;
  /** Parts of the schema that were passed over so far, for they cannot be used or are not checked. */
  passedOverCount: number;
  /** Checks a value against a schema inside the whole one. */
  readonly apply: (schema: PyValue, check: SchemaCheck) => boolean;
}

/** A value that is held against a schema. */
export interface SchemaCheck {
  readonly run: SchemaRun;
  readonly value: PyValue;
  readonly place: ValuePlace | undefined;
  /** Collects what does not fit; absent where only the result counts. */
  readonly mismatches: Mismatch[] | undefined;
  /** Parts of the value that some keyword looked at; absent if the schema does not ask. */
  readonly evaluated: EvaluatedParts | undefined;
}

/** Says if a value fits one keyword. */
export type RuleCheck = (check: SchemaCheck) => boolean;

/** A keyword of JSON Schema. */
export interface SchemaRule {
  /** A description of what may stand there, for messages. */
  readonly expected: string;
  readonly isUsable: (given: PyValue, schema: PyDict) => boolean;
  /** Makes the check, once for each schema. */
  readonly make: (given: PyValue, schema: PyDict, document: SchemaDocument) => RuleCheck;
  /** The first draft that has the keyword. Default: all have it. */
  readonly since?: SchemaDraft;
  /** The last draft that has it. */
  readonly until?: SchemaDraft;
}

/** Most mismatches that are listed of one check. */
const maxListed = 100;

/** Notes what does not fit, and returns `false`. */
export function fail(check: SchemaCheck, message: string, choices?: readonly PyValue[]): false {
  const { mismatches, place } = check;
  if (mismatches !== undefined && mismatches.length < maxListed) {
    mismatches.push({
      path: pathOf(place),
      message,
      ...(choices !== undefined && { choices }),
    });
  }
  return false;
}

/** Lists what did not fit in the branches of a check. */
export function failAll(check: SchemaCheck, found: readonly Mismatch[] | undefined): void {
  const { mismatches, run } = check;
  if (mismatches === undefined || found === undefined) return;
  run.budget.spend(found.length);
  mismatches.push(...found.slice(0, Math.max(0, maxListed - mismatches.length)));
}

/** Counts the steps of going through names, each of which costs less than a schema does. */
export function spendOnNames({ run }: SchemaCheck, count: number): void {
  run.budget.spend(count >>> 2);
}

function pathOf(place: ValuePlace | undefined): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (let at = place; at !== undefined; at = at.parent) path.push(at.key);
  return path.toReversed();
}

/** Passes over a part of the schema, which may look at all of the value. */
export function passOver(check: SchemaCheck): true {
  check.run.passedOverCount += 1;
  check.evaluated?.addAllNames();
  check.evaluated?.addAllIndexes();
  return true;
}

/**
 * Tells if the value fits the schema, or `undefined` where that is not sure: what is passed over fits
 * everything, which must not count where it is a fault to fit.
 */
export function surelyFits(schema: PyValue, check: SchemaCheck): boolean | undefined {
  const { run } = check;
  const before = run.passedOverCount;
  const fits = run.apply(schema, check);
  return fits && run.passedOverCount > before ? undefined : fits;
}

/** A member or an item of the value that is checked. */
export function partAt(check: SchemaCheck, key: string | number, value: PyValue): SchemaCheck {
  const { run, place, mismatches } = check;
  return { run, value, place: { parent: place, key }, mismatches, evaluated: undefined };
}

/** The same check, of which only the result counts. */
export function quietly(check: SchemaCheck): SchemaCheck {
  return { ...check, mismatches: undefined };
}

/** Tells if something can stand where a schema is wanted. */
export function isSchema(given: PyValue | undefined): boolean {
  return isPyDict(given) || typeof given === "boolean";
}

export function isText(given: PyValue | undefined): given is string {
  return typeof given === "string";
}

export function isNumber(given: PyValue | undefined): given is bigint | number {
  return typeof given === "bigint" || (typeof given === "number" && Number.isFinite(given));
}

/** A count, which `2.0` is as well. */
export function isCount(given: PyValue | undefined): given is bigint | number {
  return isNumber(given) && given >= 0 && (typeof given === "bigint" || Number.isInteger(given));
}

export function isTextList(given: PyValue | undefined): given is readonly string[] {
  return isPyList(given) && given.every(isText);
}
