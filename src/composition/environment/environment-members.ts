import { isCount } from "../../values/is-count.ts";
import { isObject } from "../../values/is-object.ts";
import { UsageError } from "../../errors.ts";
import { shownToolName } from "../../message.ts";

/** A rule for one member of a hand-written object. */
interface Member {
  readonly isRight: (value: unknown) => boolean;
  readonly expected: string;
}

export const text: Member = { isRight: (value) => typeof value === "string", expected: "a text" };
const method: Member = { isRight: (value) => typeof value === "function", expected: "a function" };

/** The rules for the members of an environment. */
export const environmentMembers: Readonly<Record<string, Member>> = {
  name: {
    // Names that begin with "tau-" get τ-bench's prompts and results.
    isRight: (value) => typeof value === "string" && /^(?!tau-)[\w.-]+$/.test(value),
    expected: "letters, digits, dots and hyphens, not beginning with tau-",
  },
  source: text,
  splits: {
    isRight: (value) => isObject(value) && Object.values(value).every(isCount),
    expected: "an object with the number of tasks of each split",
  },
  tools: {
    isRight: (value) => Array.isArray(value) && value.every(isTool),
    expected: "a list of what toolFromOpenAi() returns",
  },
  policyText: text,
  task: method,
  open: method,
};

/** The rule for splits with tasks by index. Such a split may be infinite. */
export const namedSplits: Member = {
  isRight: (value) =>
    isObject(value) && Object.values(value).every((size) => isCount(size) || size === Infinity),
  expected: "an object with the number of tasks of each split, Infinity where they have no end",
};

/** The rules for the members of a user. */
export const userMembers: Readonly<Record<string, Member>> = { strategy: text, open: method };

function isTool(value: unknown): boolean {
  if (!isObject(value) || !(value["openai"] instanceof Map)) return false;
  return value["name"] !== undefined && value["name"] === shownToolName(value["openai"]);
}

/**
 * Checks a hand-written object against its rules.
 * @param what - The object and its part, for the message: `lamps.js: its default export has`.
 * @throws UsageError that names the first missing or wrong member.
 */
export function assertMembers(
  value: unknown,
  members: Readonly<Record<string, Member>>,
  what: string,
): void {
  if (!isObject(value)) throw new UsageError(`Cannot use environment ${what} no object`);
  for (const [name, { isRight, expected }] of Object.entries(members)) {
    if (isRight(value[name])) continue;
    const fault = value[name] === undefined ? `no "${name}"` : `"${name}" of the wrong form`;
    throw new UsageError(`Cannot use environment ${what} ${fault}, expected ${expected}`);
  }
}
