import type { LogitRow } from "../logit-row.ts";
import { mostLikelyId, sampleId } from "../../in-process/sample-id.ts";
import { seededRandomNumbers } from "../../in-process/random-numbers.ts";
import type { Finish } from "../../engine.ts";
import type { GenerateCall, ScoreCall, ThreadNews, ThreadReply } from "./thread-message.ts";

/** What came of a row of logits. */
export type GoalStep =
  /** Goes on with this id behind the others. */
  | { readonly type: "append"; readonly id: number; readonly news?: ThreadNews }
  /** Goes on with the ids that are there. */
  | { readonly type: "advance" }
  | { readonly type: "finish"; readonly reply: ThreadReply };

/** What a sequence is computed for. */
export interface TokenGoal {
  readonly key: number;
  /** The ids to begin with. */
  readonly ids: Int32Array;
  /** Ids that may come behind them. */
  readonly maxNewIds: number;
  /** How many of the ids to begin with need not be computed: nothing asks what follows them. */
  readonly uncomputedCount: number;
  /** The first index whose logits are asked for. */
  readonly firstLogit: number;
  /** Takes the logits of what follows the id at `index`; called once an index, in order. */
  take(row: LogitRow, index: number, context: { readonly cachedTokenCount: number }): GoalStep;
  /** What there is so far; absent where a part is of no use. */
  readonly cutShort?: () => ThreadReply;
}

/** Samples a turn. `modelEndIds` end it as the request's own stop ids do. */
export function generationGoal(call: GenerateCall, modelEndIds: readonly number[]): TokenGoal {
  const { key, promptIds, sampling, maxNewTokens, streams } = call;
  const stopIds = new Set([...call.stopTokenIds, ...modelEndIds]);
  const random = seededRandomNumbers(sampling.seed, call.sessionId);
  const outputIds: number[] = [];
  const logprobs: number[] = [];
  let cachedCount = 0;
  const toReply = (finish: Finish): ThreadReply => {
    const turn = { outputIds, logprobs, finish, cachedTokenCount: cachedCount };
    return { type: "generated", key, ...turn };
  };
  return {
    key,
    ids: promptIds,
    maxNewIds: maxNewTokens,
    uncomputedCount: 0,
    firstLogit: promptIds.length - 1,
    take(row, index, { cachedTokenCount }) {
      const softened = row.soften(softeningOf(sampling.temperature));
      const { exponentials, sum } = softened;
      const id =
        sampling.temperature === 0
          ? mostLikelyId(row.logits)
          : sampleId(exponentials, { total: sum, filter: sampling, random: random(index + 1) });
      const logprob = toLogprob(row, { id, temperature: sampling.temperature, ...softened });
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      outputIds.push(id);
      logprobs.push(logprob);
      const stops = stopIds.has(id);
      cachedCount = cachedTokenCount;
      if (!stops && outputIds.length < maxNewTokens) {
        const news = { type: "sampled", key, id, logprob } as const;
        return { type: "append", id, ...(streams && { news }) };
      }
      const reply = toReply(stops ? { type: "stop", matched: id } : { type: "length" });
      return { type: "finish", reply };
    },
    cutShort: () => toReply({ type: "length" }),
  };
}

/** Scores ids that are there. */
export function scoringGoal({ key, ids, from, temperature }: ScoreCall): TokenGoal {
  const logprobs: number[] = [];
  return {
    key,
    ids,
    maxNewIds: 0,
    uncomputedCount: 1,
    firstLogit: from - 1,
    take(row, index) {
      const id = ids[index + 1] ?? 0;
      const softened = row.soften(softeningOf(temperature));
      const logprob = toLogprob(row, { id, temperature, ...softened });
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      logprobs.push(logprob);
      if (index + 2 < ids.length) return { type: "advance" };
      return { type: "finish", reply: { type: "scored", key, logprobs } };
    },
  };
}

/** Greedy sampling has the probabilities of temperature 1. */
function softeningOf(temperature: number): number {
  return temperature === 0 ? 1 : temperature;
}

/**
 * The natural logarithm of an id's probability, in single precision, at most 0. Sampling and scoring
 * compute it here, so that both give the same bits.
 */
function toLogprob(
  { logits }: LogitRow,
  at: { id: number; temperature: number; sum: number; largest: number },
): number {
  const difference = (logits[at.id] ?? NaN) - at.largest;
  const logprob = difference / softeningOf(at.temperature) - Math.log(at.sum);
  return Math.min(0, Math.fround(logprob));
}

function notANumber(key: number, index: number): ThreadReply {
  return {
    type: "failed",
    key,
    code: "engine/nan",
    message:
      `Cannot go on behind token ${index}: the model's logits there are no numbers, ` +
      "expected finite weights",
  };
}
