import type { Reading } from "../agent/agent.ts";
import type { Score, Step, World } from "../environment/environment.ts";
import { RolloutError, type FailureCode } from "../errors.ts";

const doneReasons = ["user-left", "terminal-tool", "finished"];
const worldMethods = ["begin", "step", "score", "userUsage"] as const;

/** What is checked, and where it comes from. */
interface Origin {
  readonly code: FailureCode;
  /** Such as `world.step() for tool switch in task lamp/test/0 of lamp`. */
  readonly place: string;
}

/**
 * Checks what an environment opened.
 *
 * @throws RolloutError `environment/bad-world` naming what is missing.
 */
export function checkWorld(value: unknown, place: string): World {
  const origin: Origin = { code: "environment/bad-world", place };
  const world = requireObject(value, origin, "a World");
  for (const method of worldMethods) {
    if (typeof world[method] !== "function") {
      refuse(origin, `its ${method} is ${describe(world[method])}`, "a method");
    }
  }
  if (typeof (world as { [Symbol.asyncDispose]?: unknown })[Symbol.asyncDispose] !== "function") {
    refuse(origin, "it has no method [Symbol.asyncDispose]", "one, if an empty one");
  }
  for (const list of ["tools"] as const) {
    if (world[list] !== undefined && !Array.isArray(world[list])) {
      refuse(origin, `its ${list} is ${describe(world[list])}`, "a list or nothing");
    }
  }
  if (world["policyText"] !== undefined && typeof world["policyText"] !== "string") {
    refuse(origin, `its policyText is ${describe(world["policyText"])}`, "a text or nothing");
  }
  return value as World;
}

/**
 * Checks the first thing that the agent reads.
 *
 * @throws RolloutError `environment/bad-step`.
 */
export function checkOpening(value: unknown, place: string): string {
  const origin: Origin = { code: "environment/bad-step", place };
  if (typeof value !== "string") refuse(origin, `it returned ${describe(value)}`, "a text");
  return value;
}

/**
 * Checks what an action caused.
 *
 * @throws RolloutError `environment/bad-step` naming the field.
 */
export function checkStep(value: unknown, place: string): Step {
  const origin: Origin = { code: "environment/bad-step", place };
  const step = requireObject(value, origin, "a Step");
  const { observation, from, source, isError, done } = step;
  if (typeof observation !== "string") {
    refuse(origin, `observation is ${describe(observation)}`, "a text (serialise it)");
  }
  if (from !== "tool" && from !== "user") {
    refuse(origin, `from is ${describe(from)}`, '"tool" or "user"');
  }
  if (typeof source !== "string") {
    refuse(origin, `source is ${describe(source)}`, 'the tool\'s name or "user"');
  }
  if (isError !== undefined && typeof isError !== "boolean") {
    refuse(origin, `isError is ${describe(isError)}`, "true, false or nothing");
  }
  if (done !== undefined && !doneReasons.includes(done as string)) {
    const reasons = doneReasons.map((reason) => `"${reason}"`).join(", ");
    refuse(origin, `done is ${describe(done)}`, `one of ${reasons}, or nothing`);
  }
  return value as Step;
}

/**
 * Checks what an episode was worth.
 *
 * @throws RolloutError `grader/bad-score` naming the field.
 */
export function checkScore(value: unknown, place: string): Score {
  const origin: Origin = { code: "grader/bad-score", place };
  const { reward, details } = requireObject(value, origin, "a Score");
  if (typeof reward !== "number" || !Number.isFinite(reward)) {
    refuse(origin, `reward is ${describe(reward)}`, "a finite number");
  }
  requireObject(details, origin, "details, an object such as {}");
  try {
    JSON.stringify(details);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    refuse(origin, `details cannot be written as JSON (${why})`, "plain values");
  }
  return value as Score;
}

/**
 * Checks what an agent made of a turn.
 *
 * @throws RolloutError `agent/bad-reading` naming the field.
 */
export function checkReading(value: unknown, place: string): Reading {
  const origin: Origin = { code: "agent/bad-reading", place };
  const { message, intents, reasoning, attemptCounts } = requireObject(value, origin, "a Reading");
  const { role } = requireObject(message, origin, "a message");
  if (role !== "assistant") refuse(origin, `message.role is ${describe(role)}`, '"assistant"');
  if (!Array.isArray(intents) || !intents.some(isIntended)) {
    refuse(origin, `intents is ${describe(intents)}`, "a list with one that is not ignored");
  }
  if (typeof reasoning !== "string") {
    refuse(origin, `reasoning is ${describe(reasoning)}`, 'a text, "" where there is none');
  }
  requireObject(attemptCounts, origin, "attemptCounts, an object such as {}");
  return value as Reading;
}

function isIntended(intent: unknown): boolean {
  const type = (intent as { type?: unknown } | null)?.type;
  return type === "act" || type === "refuse";
}

function requireObject(
  value: unknown,
  origin: Origin,
  expected: string,
): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const hint = value === undefined ? " (a forgotten return?)" : "";
    refuse(origin, `it returned ${describe(value)}${hint}`, expected);
  }
  return value as Readonly<Record<string, unknown>>;
}

function refuse({ code, place }: Origin, what: string, expected: string): never {
  throw new RolloutError(code, `Cannot use the answer of ${place}: ${what}, expected ${expected}`);
}

/** Longest account of a wrong value, in characters. */
const accountLength = 80;

function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return clip(JSON.stringify(value));
  if (value === null) return "null";
  if (typeof value !== "object") return JSON.stringify(value) ?? typeof value;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return `an object with ${clip(Object.keys(value).join(", ") || "no fields")}`;
}

function clip(text: string): string {
  return text.length <= accountLength ? text : `${text.slice(0, accountLength)}…`;
}
