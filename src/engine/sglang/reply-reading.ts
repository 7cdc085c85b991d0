/** A JSON object of a reply, not checked yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

const SHOWN_LENGTH = 80;

/** What is wrong with a reply; becomes a failure before it leaves `decodeGenerateReply()`. */
export class ReplyProblem extends Error {
  readonly code: "engine/bad-reply" | "engine/nan";
  readonly expected: string;

  constructor(problem: string, expected: string, code: ReplyProblem["code"] = "engine/bad-reply") {
    super(problem);
    this.code = code;
    this.expected = expected;
  }
}

/**
 * Reads a reply's text.
 *
 * @throws ReplyProblem where it is no JSON object.
 */
export function parseObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ReplyProblem(
      `the reply is not JSON: ${show(text.slice(0, SHOWN_LENGTH))}`,
      "one JSON object",
    );
  }
  if (Array.isArray(value)) {
    throw new ReplyProblem(`the reply is a list of ${value.length}`, "one JSON object");
  }
  if (value === null || typeof value !== "object") {
    throw new ReplyProblem(`the reply is ${show(value)}`, "one JSON object");
  }
  return value as JsonObject;
}

/**
 * Reads a member that must be an object; `place` goes before its name in messages.
 *
 * @throws ReplyProblem
 */
export function readObject(parent: JsonObject, name: string, place = ""): JsonObject {
  const value = parent[name];
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new ReplyProblem(`${place}${name} is ${show(value)}`, "an object");
  }
  return value as JsonObject;
}

/** A value from a reply, short enough for a message. */
export function show(value: unknown): string {
  if (value === undefined) return "absent";
  const text = JSON.stringify(value);
  return text.length <= SHOWN_LENGTH ? text : `${text.slice(0, SHOWN_LENGTH)}…`;
}

/**
 * Reads a count from `meta_info`, where it is there.
 *
 * @throws ReplyProblem where it is no whole number of at least 0.
 */
export function readCount(meta: JsonObject, name: string): number | undefined {
  const value = meta[name];
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && (value as number) >= 0) return value as number;
  throw new ReplyProblem(`meta_info.${name} is ${show(value)}`, "a count");
}
