import { isObject, type JsonObject } from "../../values/is-object.ts";
import { shorten } from "../../secrets/shorten.ts";
import { isSampledLogprob, logprobRange } from "../../values/logprob-range.ts";
import { idExpectation, isTokenId, type TokenIds } from "../token-id.ts";

const SHOWN_LENGTH = 80;

/** A problem of a reply. The engine turns it into a failure. */
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
 * Parses a reply's text.
 *
 * @throws ReplyProblem if it is not a JSON object.
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
  if (!isObject(value)) throw new ReplyProblem(`the reply is ${show(value)}`, "one JSON object");
  return value;
}

/**
 * Parses a JSON object. Returns an empty object for anything else, so that the caller reports the
 * missing members.
 */
export function parseLenientObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return {};
  }
}

/**
 * Reads a member that must be an object; `place` goes before its name in messages.
 *
 * @throws ReplyProblem
 */
export function readObject(parent: JsonObject, name: string, place = ""): JsonObject {
  const value = parent[name];
  if (!isObject(value)) throw new ReplyProblem(`${place}${name} is ${show(value)}`, "an object");
  return value;
}

/**
 * Reads a member that must be a list; `place` goes before its name in messages.
 *
 * @throws ReplyProblem
 */
export function readList(parent: JsonObject, name: string, place = ""): readonly unknown[] {
  const value = parent[name];
  if (!Array.isArray(value)) {
    throw new ReplyProblem(`${place}${name} is ${show(value)}`, "a list");
  }
  return value;
}

/**
 * Reads a token id; `place` names it in messages.
 *
 * @throws ReplyProblem
 */
export function readTokenId(value: unknown, place: string): number {
  if (!isTokenId(value)) throw new ReplyProblem(`${place} is ${show(value)}`, idExpectation());
  return value;
}

/**
 * Reads a list of token ids; `place` goes before its name in messages.
 *
 * @throws ReplyProblem
 */
export function readTokenIds(parent: JsonObject, name: string, place = ""): readonly number[] {
  const list = readList(parent, name, place);
  return list.map((value, index) => readTokenId(value, `${place}${name}[${index}]`));
}

/**
 * Reads the logprob of a sampled id; `place` names it in messages. Refuses a value at or below `floor`, which the
 * server writes in place of minus infinity or of a missing logprob.
 *
 * @throws ReplyProblem `engine/nan` for such a value, and for one that is not a finite number; `engine/bad-reply` for
 *   any other number that cannot be a logprob.
 */
export function readLogprob(
  value: unknown,
  { place, id, floor = Number.NEGATIVE_INFINITY }: { place: string; id: number; floor?: number },
): number {
  if (isSampledLogprob(value) && value > floor) return value;
  const problem = `${place}, of sampled id ${id}, is ${show(value)}`;
  // Engines write NaN and infinities as null.
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new ReplyProblem(problem, "a finite logarithm, at most 0", "engine/nan");
  }
  if (value <= floor) throw new ReplyProblem(problem, `a logarithm above ${floor}`, "engine/nan");
  throw new ReplyProblem(
    problem,
    value > 0 ? "a finite logarithm, at most 0" : `a logarithm of at least ${logprobRange.min}`,
  );
}

/** Formats a value of a reply for a message. */
export function show(value: unknown): string {
  if (value === undefined) return "absent";
  return shorten(toJson(value), SHOWN_LENGTH);
}

/** Returns a value as JSON. An engine in this process may return values that JSON cannot express. */
function toJson(value: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    return text ?? `a ${typeof value}`;
  } catch {
    return "not JSON";
  }
}

/**
 * Reads an optional count; `place` goes before its name in messages.
 *
 * @throws ReplyProblem if the value is not an integer of at least 0.
 */
export function readCount(parent: JsonObject, name: string, place = ""): number | undefined {
  const value = parent[name];
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && (value as number) >= 0) return value as number;
  throw new ReplyProblem(`${place}${name} is ${show(value)}`, "a count");
}

/**
 * The problem of a reply that counts a different number of prompt tokens and does not list them.
 */
export class PromptCountProblem extends ReplyProblem {}

/**
 * Reads the number of prompt tokens that the server reports, if any; `place` goes before the
 * member's name in messages. If the reply lists the prompt's ids (`listed`), the ids are checked
 * instead, because gateways can report a wrong count.
 *
 * @throws ReplyProblem if the prompt is not the one that was sent.
 */
export function readPromptCount(
  parent: JsonObject,
  name: string,
  { place = "", sent, listed }: { place?: string; sent: TokenIds; listed?: unknown },
): number | undefined {
  if (listed !== undefined && listed !== null) {
    checkPrompt(listed, sent);
    return sent.length;
  }
  const count = readCount(parent, name, place);
  if (count === undefined || count === sent.length) return count;
  throw new PromptCountProblem(`${place}${name} is ${count}`, `the ${sent.length} that were sent`);
}

/**
 * Checks that the prompt ids that a reply lists are those that were sent.
 *
 * @throws ReplyProblem
 */
export function checkPrompt(seen: unknown, sent: TokenIds): void {
  if (!Array.isArray(seen)) {
    throw new ReplyProblem(`prompt_token_ids is ${show(seen)}`, "a list of ids");
  }
  if (seen.length !== sent.length) {
    throw new ReplyProblem(
      `prompt_token_ids has ${seen.length} ids`,
      `the ${sent.length} that were sent`,
    );
  }
  const differing = seen.findIndex((id, index) => id !== sent[index]);
  if (differing < 0) return;
  throw new ReplyProblem(
    `prompt_token_ids[${differing}] is ${show(seen[differing])}`,
    `${sent[differing]}, as it was sent`,
  );
}
