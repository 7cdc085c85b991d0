import { calculate } from "../values/template-arithmetic.ts";
import { compareOrder, contains, equals } from "../values/template-compare.ts";
import { bindArguments, signatureOf } from "../evaluate/template-function.ts";
import { iterableOf, lengthOf } from "../values/template-iterate.ts";
import { isLower, isUpper } from "../values/template-string-tests.ts";
import { strOf } from "../values/template-text.ts";
import type { CallArguments, TemplateValue } from "../values/template-value.ts";
import { isDict, Markup, objectOf, textOf, Undefined } from "../values/template-value.ts";

/** A test after `is`: takes the value before it, and its own arguments. */
type TemplateTest = (value: TemplateValue, args: CallArguments) => boolean;

/**
 * Returns the test of that name, or `undefined`.
 *
 * **Source:** the Jinja documentation, "List of Builtin Tests".
 */
export function findTest(name: string): TemplateTest | undefined {
  return tests.get(name);
}

function test(
  signatureText: string,
  holds: (value: TemplateValue, other: TemplateValue) => boolean,
): readonly [string, TemplateTest] {
  const signature = signatureOf(signatureText);
  return [signature.name, (value, args) => holds(value, bindArguments(signature, args)[0] ?? null)];
}

function leaves(value: TemplateValue, divisor: TemplateValue, remainder: bigint): boolean {
  return equals(calculate(value, "%", divisor), remainder);
}

/** Python's `is`: the same object, or equal singletons. */
function isSame(value: TemplateValue, other: TemplateValue): boolean {
  return value === other || (value instanceof Undefined && other instanceof Undefined);
}

/** True if the value has a length and can be subscripted. */
function isSequence(value: TemplateValue): boolean {
  const object = objectOf(value);
  return object === undefined ? lengthOf(value) !== undefined : object.itemAt !== undefined;
}

const comparisons = {
  eq: (value: TemplateValue, other: TemplateValue) => equals(value, other),
  ne: (value: TemplateValue, other: TemplateValue) => !equals(value, other),
  lt: (value: TemplateValue, other: TemplateValue) => compareOrder(value, "<", other),
  le: (value: TemplateValue, other: TemplateValue) => compareOrder(value, "<=", other),
  gt: (value: TemplateValue, other: TemplateValue) => compareOrder(value, ">", other),
  ge: (value: TemplateValue, other: TemplateValue) => compareOrder(value, ">=", other),
};

const tests: ReadonlyMap<string, TemplateTest> = new Map([
  test("odd", (value) => leaves(value, 2n, 1n)),
  test("even", (value) => leaves(value, 2n, 0n)),
  test("divisibleby num", (value, divisor) => leaves(value, divisor, 0n)),
  test("defined", (value) => !(value instanceof Undefined)),
  test("undefined", (value) => value instanceof Undefined),
  test("none", (value) => value === null),
  test("boolean", (value) => typeof value === "boolean"),
  test("false", (value) => value === false),
  test("true", (value) => value === true),
  test("integer", (value) => typeof value === "bigint"),
  test("float", (value) => typeof value === "number"),
  test("lower", (value) => isLower(strOf(value))),
  test("upper", (value) => isUpper(strOf(value))),
  test("string", (value) => textOf(value) !== undefined),
  test("mapping", isDict),
  test("number", (value) => ["bigint", "number", "boolean"].includes(typeof value)),
  test("sequence", isSequence),
  test("iterable", (value) => iterableOf(value) !== undefined),
  test("callable", (value) => value instanceof Undefined || objectOf(value)?.call !== undefined),
  test("sameas other", isSame),
  test("escaped", (value) => value instanceof Markup),
  test("in seq", (value, container) => contains(container, value)),
  test("== other", comparisons.eq),
  test("eq other", comparisons.eq),
  test("equalto other", comparisons.eq),
  test("!= other", comparisons.ne),
  test("ne other", comparisons.ne),
  test("> other", comparisons.gt),
  test("gt other", comparisons.gt),
  test("greaterthan other", comparisons.gt),
  test(">= other", comparisons.ge),
  test("ge other", comparisons.ge),
  test("< other", comparisons.lt),
  test("lt other", comparisons.lt),
  test("lessthan other", comparisons.lt),
  test("<= other", comparisons.le),
  test("le other", comparisons.le),
]);
