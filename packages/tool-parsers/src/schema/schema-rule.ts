import type { StepBudget } from "../pattern/step-budget.ts";
import { isPyDict, isPyList, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import type { EvaluatedParts } from "./evaluated-parts.ts";
import type { SchemaDocument } from "./schema-document.ts";
import type { SchemaDraft } from "./schema-draft.ts";

/** A place in a value, linked to its parent places. */
interface ValuePlace {
  readonly parent: ValuePlace | undefined;
  readonly key: string | number;
}

/** One place at which a value does not fit its schema. */
export interface Mismatch {
  /** Keys and indexes from the root; empty for the complete value. */
  readonly path: readonly (string | number)[];
  /** A message for a person or a model, such as `must be integer`. */
  readonly message: string;
  /** The allowed values, if they can be listed. */
  readonly choices?: readonly PyValue[];
}

/** The shared state of one check. */
export interface SchemaRun {
  readonly budget: StepBudget;
  /** The number of schema parts that were skipped so far, because they are unusable or not checked. */
  passedOverCount: number;
  /** Checks a value against a subschema. */
  readonly apply: (schema: PyValue, check: SchemaCheck) => boolean;
}

/** A value that is checked against a schema. */
export interface SchemaCheck {
  readonly run: SchemaRun;
  readonly value: PyValue;
  readonly place: ValuePlace | undefined;
  /** The list to which mismatches are added. Undefined if only the result matters. */
  readonly mismatches: Mismatch[] | undefined;
  /** The parts of the value that some keyword evaluated. Undefined if the schema does not use them. */
  readonly evaluated: EvaluatedParts | undefined;
}

/** A function that returns true if a value fits one keyword. */
export type RuleCheck = (check: SchemaCheck) => boolean;

/** A keyword of JSON Schema. */
export interface SchemaRule {
  /** A description of the keyword's valid values, for messages. */
  readonly expected: string;
  readonly isUsable: (given: PyValue, schema: PyDict) => boolean;
  /** Makes the check of the keyword. Called once for each schema. */
  readonly make: (given: PyValue, schema: PyDict, document: SchemaDocument) => RuleCheck;
  /** The first draft that has the keyword. Default: all have it. */
  readonly since?: SchemaDraft;
  /** The last draft that has the keyword. Default: all later drafts have it. */
  readonly until?: SchemaDraft;
}

/** Maximum number of mismatches that one check lists. */
const maxListed = 100;

/** Records a mismatch, and returns `false`. */
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

/** Records the mismatches in the branches of a check. */
export function failAll(check: SchemaCheck, found: readonly Mismatch[] | undefined): void {
  const { mismatches, run } = check;
  if (mismatches === undefined || found === undefined) return;
  run.budget.spend(found.length);
  mismatches.push(...found.slice(0, Math.max(0, maxListed - mismatches.length)));
}

/** Counts the steps of iterating names. A name costs less than a schema. */
export function spendOnNames({ run }: SchemaCheck, count: number): void {
  run.budget.spend(count >>> 2);
}

function pathOf(place: ValuePlace | undefined): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (let at = place; at !== undefined; at = at.parent) path.push(at.key);
  return path.toReversed();
}

/** Skips a part of the schema, which might evaluate all of the value. */
export function passOver(check: SchemaCheck): true {
  check.run.passedOverCount += 1;
  check.evaluated?.addAllNames();
  check.evaluated?.addAllIndexes();
  return true;
}

/**
 * Returns true if the value fits the schema, or `undefined` if that is uncertain: a skipped part accepts
 * everything, which must not count if fitting is an error.
 */
export function surelyFits(schema: PyValue, check: SchemaCheck): boolean | undefined {
  const { run } = check;
  const before = run.passedOverCount;
  const fits = run.apply(schema, check);
  return fits && run.passedOverCount > before ? undefined : fits;
}

/** Returns the check of a member or an item of the value. */
export function partAt(check: SchemaCheck, key: string | number, value: PyValue): SchemaCheck {
  const { run, place, mismatches } = check;
  return { run, value, place: { parent: place, key }, mismatches, evaluated: undefined };
}

/** Returns a copy of the check that collects no mismatches. */
export function quietly(check: SchemaCheck): SchemaCheck {
  return { ...check, mismatches: undefined };
}

/** True if a value is a valid schema. */
export function isSchema(given: PyValue | undefined): boolean {
  return isPyDict(given) || typeof given === "boolean";
}

export function isText(given: PyValue | undefined): given is string {
  return typeof given === "string";
}

export function isNumber(given: PyValue | undefined): given is bigint | number {
  return typeof given === "bigint" || (typeof given === "number" && Number.isFinite(given));
}

/** True for a count, including `2.0`. */
export function isCount(given: PyValue | undefined): given is bigint | number {
  return isNumber(given) && given >= 0 && (typeof given === "bigint" || Number.isInteger(given));
}

export function isTextList(given: PyValue | undefined): given is readonly string[] {
  return isPyList(given) && given.every(isText);
}
