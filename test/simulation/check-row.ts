import { isLeaving, textOfLine } from "../../src/user/user.ts";
import { seedAfter } from "../../src/engine/continued-sampling.ts";
import type { EpisodeRow } from "../../src/run/folder/run-folder.ts";
import { characterStopId } from "../../src/testing/character-renderer.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import { openId, turnText } from "./simulated-policy.ts";
import type { SampledTurn } from "./simulated-world.ts";
import { openingLine, replyLine, rewardOf, whim } from "./tally-world.ts";

/** The facts that a row is compared with. */
export interface RowFacts {
  readonly episode: EpisodeRow;
  /** The engine's samples for its rollout. */
  readonly sampled: readonly SampledTurn[];
  /** The engine's prompt of each turn. */
  readonly seedOf: (turnIndex: number) => number;
}

/** Checks each id of a row: its origin, its mask, and the world's answers. */
export function checkRow(sample: Sample, facts: RowFacts): readonly string[] {
  const found = [
    ...verifySample(sample as unknown as Record<string, unknown>).map(
      ({ rule, detail }) => `${rule}: ${detail}`,
    ),
    ...checkTurns(sample, facts),
    ...checkTokens(sample),
    ...checkStory(sample, facts.episode),
  ];
  return found.map((detail) => `${sample.rolloutId}: ${detail}`);
}

function checkTurns(
  { lossMask, policyVersions, stopReason, tokenIds, turns }: Sample,
  { episode, sampled, seedOf }: RowFacts,
): readonly string[] {
  const found: string[] = [];
  for (const { turnIndex, start, end, finish } of turns) {
    const isAnswer = ({ attempt, ids }: SampledTurn): boolean =>
      attempt === episode.attempt &&
      ids.length === end &&
      ids.every((id, index) => id === tokenIds[index]);
    // A worker that counted as dead may have sampled some of the same tokens again.
    const answer =
      sampled.find((turn) => !turn.isMixed && isAnswer(turn)) ??
      sampled.find((turn) => isAnswer(turn));
    if (answer === undefined) found.push(`ids ${start} to ${end} were never sampled`);
    if (answer?.isMixed === true) found.push(`turn ${turnIndex} was sampled by mixed weights`);
    const seed = seedOf(turnIndex);
    if (answer !== undefined) {
      const wanted = seedAfter(seed, answer.promptLength - start);
      if (answer.seed !== wanted) {
        found.push(
          `turn ${turnIndex} was sampled with the seed ${answer.seed}, expected ${wanted}`,
        );
      }
    }
    // Only its deadline may have cut a turn short.
    const isWhole = finish === "stop";
    const text = textOf(tokenIds.slice(start, isWhole ? end - 1 : end));
    const whole = turnText(tokenIds.slice(0, start), seed);
    const isTurn = isWhole ? whole === text : whole.startsWith(text);
    if (!isTurn || (!isWhole && stopReason !== "deadline")) {
      found.push(`turn ${turnIndex} is ${JSON.stringify(text)}`);
    }
    const versions = policyVersions.slice(start, end).map(Number);
    if (versions.some((version, index) => version < (versions[index - 1] ?? 0))) {
      found.push(`versions go back within a turn: ${versions.join(" ")}`);
    }
    if (lossMask.slice(start, end).some((bit) => bit !== 1)) found.push("a sampled id is masked");
  }
  return found;
}

function checkTokens({ logprobs, lossMask, tokenIds, turns }: Sample): readonly string[] {
  const found: string[] = [];
  const sampledCount = turns.reduce((sum, { start, end }) => sum + end - start, 0);
  if (lossMask.reduce<number>((sum, bit) => sum + bit, 0) !== sampledCount) {
    found.push("something is trained that was not sampled");
  }
  tokenIds.forEach((id, index) => {
    const logprob = lossMask[index] === 1 ? -(id % 7) / 8 : 0;
    if (logprobs[index] !== logprob && logprobs[index]! + 0 !== logprob + 0) {
      found.push(`logprobs[${index}] is ${logprobs[index]}, expected ${logprob}`);
    }
  });
  return found;
}

/** Reads the conversation from its ids, and computes each party's expected answers. */
function checkStory(
  { outcome, reward, stopReason, tokenIds }: Sample,
  { seed, taskIndex }: EpisodeRow,
): readonly string[] {
  const found: string[] = [];
  let sum = 0;
  let callCount = 0;
  let saidCount = 0;
  let hasLeft = false;
  const expected: RegExp[] = [asPattern(openingLine(taskIndex, seed))];
  for (const { role, text, isClosed } of messagesIn(tokenIds).slice(1)) {
    if (role !== "assistant") {
      const pattern = expected.shift();
      if (pattern?.test(text) !== true) {
        found.push(
          `${role} says ${JSON.stringify(text)}, expected ${pattern?.source ?? "nothing"}`,
        );
      }
      continue;
    }
    if (expected.length > 0) found.push(`no message says ${expected[0]!.source}`);
    if (!isClosed) continue;
    const calls = [...text.matchAll(/"by": (\d+)/g)];
    for (const [, by] of calls) {
      sum += Number(by);
      callCount += 1;
      expected.push(asPattern(`sum ${sum}`, callCount % 2 === 1 ? "" : ", drew \\d+"));
    }
    if (calls.length > 0) continue;
    saidCount += 1;
    const line = replyLine(saidCount, text);
    hasLeft = isLeaving(line);
    if (!hasLeft) expected.push(asPattern(textOfLine(line)));
  }
  if (hasLeft !== (outcome === "completed") && outcome !== "failed" && stopReason !== "deadline") {
    found.push(`it is ${outcome}, and the user has ${hasLeft ? "" : "not "}left`);
  }
  const isScored =
    outcome === "completed" || (outcome === "truncated" && stopReason !== "deadline");
  const wanted = isScored ? (hasLeft ? rewardOf(sum) : 0) : undefined;
  if (reward !== wanted) found.push(`its reward is ${reward}, expected ${wanted}`);
  return found;
}

function asPattern(text: string, more = ""): RegExp {
  const [plain, end] = [text, whim].map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${plain}${more}(?:${end})?$`);
}

/** The numbers that were drawn in a row; no other row may have them. */
export function drawnIn({ tokenIds }: Sample): readonly number[] {
  return messagesIn(tokenIds).flatMap(({ role, text }) =>
    role === "tool" ? [...text.matchAll(/drew (\d+)/g)].map(([, drawn]) => Number(drawn)) : [],
  );
}

interface SpelledMessage {
  readonly role: string;
  readonly text: string;
  readonly isClosed: boolean;
}

/** The messages that ids spell, in the form of the character renderer. */
function messagesIn(tokenIds: readonly number[]): readonly SpelledMessage[] {
  const messages: SpelledMessage[] = [];
  let start = tokenIds.indexOf(openId);
  while (start >= 0) {
    const next = tokenIds.indexOf(openId, start + 1);
    const ids = tokenIds.slice(start + 1, next < 0 ? tokenIds.length : next);
    const isClosed = ids.at(-1) === characterStopId;
    const spelled = textOf(isClosed ? ids.slice(0, -1) : ids);
    const at = spelled.indexOf("\n");
    messages.push({ role: spelled.slice(0, at), text: spelled.slice(at + 1), isClosed });
    start = next;
  }
  return messages;
}

function textOf(ids: readonly number[]): string {
  return String.fromCodePoint(...ids);
}
