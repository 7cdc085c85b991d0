import { ServiceError } from "./service-error.ts";

/** The type that a member of a body must have. */
export interface MemberRule {
  /** Such as `an integer of at least 1`. */
  readonly expected: string;
  readonly isRight: (value: unknown) => boolean;
  readonly isOptional?: boolean;
}

/** A whole number that JSON and JavaScript have exactly. */
export function wholeNumber(min: number): MemberRule {
  return {
    expected: `an integer of at least ${min} and below 2^53`,
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= min,
  };
}

/** A number within a range, both ends included. */
export function numberWithin(min: number, max: number): MemberRule {
  return {
    expected: `a number from ${min} to ${max}`,
    isRight: (value) => typeof value === "number" && value >= min && value <= max,
  };
}

/** A text of so many characters. */
export function textOf(min: number, max: number): MemberRule {
  return {
    expected: `a text of ${min} to ${max} characters`,
    isRight: (value) => typeof value === "string" && value.length >= min && value.length <= max,
  };
}

/** The same, or absent. */
export function optional(rule: MemberRule): MemberRule {
  return { ...rule, isOptional: true };
}

/**
 * Checks that an object has the members that rules name, and no others.
 *
 * @param place - In front of the members' names in messages, such as `sampling.`.
 * @throws ServiceError `bad-request` that names the member.
 */
export function checkMembers(
  body: object,
  rules: Readonly<Record<string, MemberRule>>,
  place = "",
): void {
  for (const name of Object.keys(body)) {
    if (Object.hasOwn(rules, name)) continue;
    const known = Object.keys(rules).join(", ");
    throw new ServiceError(
      "bad-request",
      `There is no member ${JSON.stringify(place + name)}: expected ${known === "" ? "none" : known}`,
    );
  }
  for (const [name, { expected, isRight, isOptional = false }] of Object.entries(rules)) {
    const value: unknown = (body as Record<string, unknown>)[name];
    if (isOptional && value === undefined) continue;
    if (isRight(value)) continue;
    const state = value === undefined ? "missing" : "wrong";
    throw new ServiceError("bad-request", `"${place}${name}" is ${state}: expected ${expected}`);
  }
}
