import { ServiceError } from "./service-error.ts";

/** The type that a member of a body must have. */
export interface MemberRule {
  /** The expected value for error messages, such as `an integer of at least 1`. */
  readonly expected: string;
  readonly isRight: (value: unknown) => boolean;
  readonly isOptional?: boolean;
}

/** Accepts a whole number up to 2^53 - 1. */
export function wholeNumber(min: number): MemberRule {
  return {
    expected: `an integer of at least ${min} and below 2^53`,
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= min,
  };
}

/** Accepts a number within a range, including both ends. */
export function numberWithin(min: number, max: number): MemberRule {
  return {
    expected: `a number from ${min} to ${max}`,
    isRight: (value) => typeof value === "number" && value >= min && value <= max,
  };
}

/** Accepts a text with `min` to `max` characters. */
export function textOf(min: number, max: number): MemberRule {
  return {
    expected: `a text of ${min} to ${max} characters`,
    isRight: (value) => typeof value === "string" && value.length >= min && value.length <= max,
  };
}

/** Accepts a value of the rule, or an absent one. */
export function optional(rule: MemberRule): MemberRule {
  return { ...rule, isOptional: true };
}

/**
 * Checks that an object has the members of the rules, and no others.
 *
 * @param place - The prefix of the members' names in messages, such as `sampling.`.
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
