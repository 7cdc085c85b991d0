import type { LogitRow } from "../logit-row.ts";
import { bestIds } from "../../in-process/best-ids.ts";
import { seededRandomNumbers } from "../../in-process/random-numbers.ts";
import type { Finish } from "../../engine.ts";
import { drawToken, softmaxTemperature, toLogprob } from "./draw-token.ts";
import { GrowingRows } from "./growing-rows.ts";
import { TurnColumns, type ReadRoutes } from "./turn-columns.ts";
import type { GenerateCall, ScoreCall, TokenMessage, ThreadReply } from "./thread-message.ts";

/** The result of a row of logits. */
export type GoalStep =
  /** The sequence continues with this id. */
  | { readonly type: "append"; readonly id: number; readonly message?: TokenMessage }
  /** The sequence continues with the next given id. */
  | { readonly type: "advance" }
  | { readonly type: "finish"; readonly reply: ThreadReply };

/** The facts about a sequence that its goal needs. */
export interface SequenceContext {
  /** Number of leading ids that were in the cache. */
  readonly cachedTokenCount: number;
  readonly readRoutes: ReadRoutes;
}

/** The purpose of a sequence: sampling or scoring. */
export interface TokenGoal {
  readonly key: number;
  /** The given ids. */
  readonly ids: Int32Array;
  /** Maximum number of new ids. */
  readonly maxNewIds: number;
  /**
   * Number of given ids at the end that need not be computed, because no logits after them are
   * requested.
   */
  readonly uncomputedCount: number;
  /** The index of the first id with requested logits. */
  readonly firstLogit: number;
  /** Receives the logits after the id at `index`. Called once for each index, in order. */
  take(row: LogitRow, index: number, context: SequenceContext): GoalStep;
  /** Returns the tokens sampled so far. Absent for a goal with a result that is useless in parts. */
  readonly cutShort?: () => ThreadReply;
}

/** Creates a goal that samples a turn. The turn ends at one of `modelEndIds`, or at a stop id of the request. */
export function generationGoal(call: GenerateCall, modelEndIds: readonly number[]): TokenGoal {
  const { key, promptIds, sampling, maxNewTokens, streams } = call;
  const stopIds = new Set([...call.stopTokenIds, ...modelEndIds]);
  const random = seededRandomNumbers(sampling.seed, call.sessionId);
  const columns = call.columns && new TurnColumns(call.columns);
  const outputIds: number[] = [];
  const logprobs: number[] = [];
  let cachedCount = 0;
  const toReply = (finish: Finish): ThreadReply => {
    const turn = { outputIds, logprobs, finish, cachedTokenCount: cachedCount };
    const bytes = outputIds.length === 0 ? undefined : columns?.toBytes();
    return { type: "generated", key, ...turn, ...(bytes !== undefined && { columns: bytes }) };
  };
  return {
    key,
    ids: promptIds,
    maxNewIds: maxNewTokens,
    uncomputedCount: 0,
    firstLogit: promptIds.length - 1,
    take(row, index, { cachedTokenCount, readRoutes }) {
      const { id, logprob } = drawToken(row, { sampling, random: random(index + 1), columns });
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      columns?.addRoutes(readRoutes, index + 1);
      outputIds.push(id);
      logprobs.push(logprob);
      const stops = stopIds.has(id);
      cachedCount = cachedTokenCount;
      if (!stops && outputIds.length < maxNewTokens) {
        const message = { type: "sampled", key, id, logprob } as const;
        return { type: "append", id, ...(streams && { message }) };
      }
      const reply = toReply(stops ? { type: "stop", matched: id } : { type: "length" });
      return { type: "finish", reply };
    },
    cutShort: () => toReply({ type: "length" }),
  };
}

/** Creates a goal that scores given ids, and lists the most probable ids at the position of each id. */
export function scoringGoal({ key, ids, from, temperature, topCount }: ScoreCall): TokenGoal {
  const logprobs: number[] = [];
  const tops = topCount === undefined ? undefined : new GrowingRows();
  return {
    key,
    ids,
    maxNewIds: 0,
    uncomputedCount: 1,
    firstLogit: from - 1,
    take(row, index) {
      const id = ids[index + 1] ?? 0;
      const probabilities = row.softmax(softmaxTemperature(temperature));
      const logprobOf = (each: number): number =>
        toLogprob(row, { id: each, temperature, ...probabilities });
      const logprob = logprobOf(id);
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      logprobs.push(logprob);
      if (topCount !== undefined) {
        const best = bestIds(row.logits, Math.min(topCount, row.logits.length));
        tops!.add(best, best.map(logprobOf));
      }
      if (index + 2 < ids.length) return { type: "advance" };
      const lists = tops && { tops: tops.toBytes() };
      return { type: "finish", reply: { type: "scored", key, logprobs, ...lists } };
    },
  };
}

function notANumber(key: number, index: number): ThreadReply {
  return {
    type: "failed",
    key,
    code: "engine/nan",
    message:
      `Cannot continue after token ${index}: the model's logits there are not numbers, ` +
      "expected finite weights",
  };
}
