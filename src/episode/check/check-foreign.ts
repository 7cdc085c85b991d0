import type { Score, Step, World } from "../../environment/environment.ts";
import { componentsFault, turnRewardsFault } from "../../environment/reward-parts.ts";
import { RolloutError } from "../../errors.ts";
import { copyMembers } from "../../values/copy-members.ts";
import { wellFormedCopy } from "../../values/plain-copy.ts";
import { isReward } from "../../environment/is-reward.ts";
import { isCount } from "../../trajectory/violation.ts";
import { spendingCounts } from "../../user/chat/add-spending.ts";
import type { User, UserLine, UserSession, UserUsage } from "../../user/user.ts";
import {
  describe,
  refuse,
  requireFields,
  requireObject,
  requirePlain,
  requireTools,
  type Origin,
} from "./foreign-value.ts";
import { isWellFormed, toWellFormed } from "../../text/well-formed.ts";

const doneReasons = ["user-left", "terminal-tool", "finished"];
const worldMethods = ["begin", "step", "score", "userUsage"] as const;
const sessionMethods = ["begin", "reply", "usage"] as const;

/**
 * Checks a world that an environment opened.
 *
 * @throws RolloutError `environment/bad-world` naming the missing member.
 */
export function checkWorld(value: unknown, place: string): World {
  const origin: Origin = { code: "environment/bad-world", place };
  const world = requireObject(value, origin, "a World");
  requireFields(world, worldMethods, { ...origin, is: isMethod, expected: "a method" });
  if (typeof (world as { [Symbol.asyncDispose]?: unknown })[Symbol.asyncDispose] !== "function") {
    refuse(origin, "it has no method [Symbol.asyncDispose]", "one, if an empty one");
  }
  if (world["tools"] !== undefined) requireTools(world["tools"], origin);
  if (world["policyText"] !== undefined && typeof world["policyText"] !== "string") {
    refuse(origin, `its policyText is ${describe(world["policyText"])}`, "a text or nothing");
  }
  return value as World;
}

/**
 * Checks the first text that the agent reads.
 *
 * @throws RolloutError `environment/bad-step`.
 */
export function checkOpening(value: unknown, place: string): string {
  const origin: Origin = { code: "environment/bad-step", place };
  if (typeof value !== "string") refuse(origin, `it returned ${describe(value)}`, "a text");
  return toWellFormed(value);
}

/**
 * Checks the result of an action.
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
  requirePlain(step, origin);
  // The prompt and the record have the same text: U+FFFD for half of a surrogate pair.
  if (isWellFormed(observation)) return value as Step;
  return { ...copyStep(value as Step), observation: toWellFormed(observation) };
}

/**
 * Returns a plain copy of a step, for the recording of a world that is not repeatable. For a repeatable world, the
 * recording has a hash of the step's own JSON.
 */
export function copyStep(step: Step): Step {
  return copyMembers(step, stepMembers);
}

const stepMembers = ["observation", "from", "source", "isError", "done"];

/**
 * Checks a score.
 *
 * @throws RolloutError `grader/bad-score` naming the field.
 */
export function checkScore(value: unknown, place: string, turnCount?: number): Score {
  const origin: Origin = { code: "grader/bad-score", place };
  const score = requireObject(value, origin, "a Score");
  const { reward, details } = score;
  if (reward !== null && !isReward(reward)) {
    const isFinite = Number.isFinite(reward);
    const expected = isFinite
      ? "one that is finite in 32 bits, as trainers hold it"
      : "a finite number";
    refuse(origin, `reward is ${describe(reward)}`, expected);
  }
  requireObject(details, origin, "details, an object such as {}");
  requirePlain(score, origin);
  const { components, turnRewards, success } = score;
  if (success !== undefined && typeof success !== "boolean") {
    refuse(origin, `success is ${describe(success)}`, "true or false");
  }
  const fault =
    (components === undefined ? undefined : componentsFault(components, reward)) ??
    (turnRewards === undefined ? undefined : turnRewardsFault(turnRewards, reward, turnCount));
  if (fault !== undefined) {
    throw new RolloutError(origin.code, `Cannot use the answer of ${place}: ${fault}`);
  }
  // A copy, because the world may be disposed of before the score is written.
  return {
    ...(score as unknown as Score),
    reward,
    details: wellFormedCopy(details) as Score["details"],
    ...(components !== undefined && {
      components: wellFormedCopy(components) as NonNullable<Score["components"]>,
    }),
    ...(turnRewards !== undefined && { turnRewards: [...(turnRewards as number[])] }),
  };
}

/**
 * Checks a user's session.
 *
 * @throws RolloutError `user/bad-session` naming the missing member.
 */
export function checkSession(value: unknown, place: string): UserSession {
  const origin: Origin = { code: "user/bad-session", place };
  const session = requireObject(value, origin, "a UserSession");
  requireFields(session, sessionMethods, { ...origin, is: isMethod, expected: "a method" });
  return value as UserSession;
}

/**
 * Checks a user's first line.
 *
 * @throws RolloutError `user/bad-line`.
 */
export function checkFirstLine(value: unknown, place: string): string {
  if (typeof value !== "string") refuseLine(value, place, "a text");
  return toWellFormed(value);
}

/**
 * Checks a user's reply.
 *
 * @throws RolloutError `user/bad-line`.
 */
export function checkLine(value: unknown, place: string): UserLine {
  if (typeof value === "string") return toWellFormed(value);
  const { text, leaves } = (value ?? {}) as { readonly text?: unknown; readonly leaves?: unknown };
  if (typeof text !== "string" || typeof leaves !== "boolean") {
    refuseLine(value, place, 'a text, or { text: "…", leaves: true }');
  }
  return isWellFormed(text)
    ? (value as UserLine)
    : ({ text: toWellFormed(text), leaves } as UserLine);
}

function refuseLine(value: unknown, place: string, expected: string): never {
  const hint = value === undefined ? " (a forgotten return?)" : "";
  refuse({ code: "user/bad-line", place }, `it returned ${describe(value)}${hint}`, expected);
}

/**
 * Checks a user's reported cost.
 *
 * @throws RolloutError `user/bad-usage` naming the field.
 */
export function checkUsage(value: unknown, { strategy }: Pick<User, "strategy">): UserUsage {
  const origin: Origin = { code: "user/bad-usage", place: `user.usage() of ${strategy}` };
  const usage = copyMembers(requireObject(value, origin, "a UserUsage"), usageMembers);
  requireFields(usage, spendingCounts, { ...origin, is: isCount, expected: "a count" });
  const { costUsd } = usage;
  if (costUsd !== undefined && !Number.isFinite(costUsd)) {
    refuse(origin, `costUsd is ${describe(costUsd)}`, "a finite number or nothing");
  }
  requirePlain(usage, origin);
  return usage as unknown as UserUsage;
}

const usageMembers = [...spendingCounts, "costUsd", "quality"];

function isMethod(value: unknown): boolean {
  return typeof value === "function";
}
