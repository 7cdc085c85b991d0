import { RolloutError, UsageError, type FailureCode } from "../../errors.ts";
import { isObject } from "../../values/is-object.ts";
import type { ObjectSchema } from "../standard-schema.ts";

/** A tool, as the Python side describes it. */
export interface PythonTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: ObjectSchema;
  /** Time limit of a call in milliseconds. If absent, the default applies. */
  readonly timeoutMs?: number;
  readonly ends?: boolean;
}

/** The answer to `load`. */
export interface PythonFacts {
  readonly name: string;
  readonly source: string;
  /**
   * The way in which the environment takes actions. `tools`: calls are performed one by one. `turns`: each message of
   * the model is passed as a whole.
   */
  readonly kind: "tools" | "turns";
  readonly policy: string;
  readonly tools: readonly PythonTool[];
  readonly repeatable: boolean;
  /** The user: a function of the author (`own`), the instruction, or none. */
  readonly user: "own" | "instruction" | "none";
  readonly splits: Readonly<Record<string, number>>;
  /** The hashes of the environment's files, by absolute path. Installed packages are left out. */
  readonly files: Readonly<Record<string, string>>;
  /** A hash of the first tasks of each split. */
  readonly tasksHash: string;
  /** The versions of the packages that the environment consists of. */
  readonly packages?: Readonly<Record<string, string>>;
  readonly definedAt?: string;
}

/** A task, as the Python side describes it. */
export interface PythonTask {
  readonly instruction: string;
  readonly id?: string;
}

/** A message in OpenAI's form. */
export interface PythonMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: unknown;
  readonly tool_calls?: unknown;
}

/** The answer to `open`. */
export interface PythonOpening {
  readonly policy?: string;
  readonly messages?: readonly PythonMessage[];
  readonly tools?: readonly PythonTool[];
}

/** The answer to `call`. */
export interface PythonCallAnswer {
  readonly text: string;
  readonly isError?: boolean;
  readonly ends?: boolean;
  readonly done?: boolean;
}

/** The answer to `turn`. */
export interface PythonTurnAnswer {
  readonly messages: readonly PythonMessage[];
  readonly done?: unknown;
}

/** The answer to `say`: the next line, the user's leaving, or all lines of a user that does not react. */
export interface PythonLine {
  readonly lines?: readonly string[];
  readonly text?: string;
  readonly leaves?: boolean;
}

const expectedFacts: Readonly<Record<string, (value: unknown) => boolean>> = {
  name: (value) => typeof value === "string" && /^(?!tau-)[\w.-]+$/.test(value),
  source: isText,
  kind: (value) => value === "tools" || value === "turns",
  policy: isText,
  tools: Array.isArray,
  repeatable: (value) => typeof value === "boolean",
  user: isText,
  splits: isObject,
  files: isObject,
  tasksHash: isText,
};

/**
 * Reads the answer to `load`.
 * @throws UsageError naming the member that is wrong.
 */
export function readFacts(answer: unknown, environment: string): PythonFacts {
  const facts = isObject(answer) ? answer : {};
  for (const [name, isRight] of Object.entries(expectedFacts)) {
    if (isRight(facts[name])) continue;
    const hint =
      name === "name" ? ", expected letters, digits, -, _ and ., not beginning with tau-" : "";
    throw new UsageError(
      `Cannot use environment ${environment}: its ${name} is ${JSON.stringify(facts[name]) ?? "absent"}${hint}`,
    );
  }
  return facts as unknown as PythonFacts;
}

/**
 * Returns the member of an answer as a text.
 *
 * @throws RolloutError with the code if a member of an answer is no text.
 */
export function requireText(value: unknown, code: FailureCode, what: string): string {
  if (isText(value)) return value;
  throw new RolloutError(
    code,
    `${what}: expected a text, found ${JSON.stringify(value) ?? "nothing"}`,
  );
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
