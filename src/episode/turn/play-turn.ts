import type { Intent, Reading } from "../../agent/agent.ts";
import type { World } from "../../environment/environment.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { tolerate, type Play, type TurnsEnd } from "../play.ts";
import { addObservations, observe } from "./add-observations.ts";
import { parseTurn } from "./parse-turn.ts";
import { performIntents, type Performed } from "./perform-intents.ts";
import { recordTurn, splitStop } from "./record-turn.ts";
import { sampleTurn, type SampledTurn } from "./sample-turn.ts";

/**
 * Plays one turn: samples it, parses it, performs its intents in the world, and adds the observations to the ledger.
 * The turn is recorded as soon as it is sampled.
 *
 * @returns the reason why the episode is over. `undefined` if it continues.
 * @throws RolloutError with the party that failed.
 */
export function playTurn(
  play: Play,
  world: World,
  turnIndex: number,
): Promise<TurnsEnd | undefined> {
  // V8 keeps this function's locals alive while it waits for the engine, so the work after sampling happens in
  // `playSampled()`.
  return sampleTurn(play, turnIndex).then((sampling) =>
    sampling.type === "ended" ? sampling.end : playSampled(play, world, turnIndex, sampling),
  );
}

async function playSampled(
  play: Play,
  world: World,
  turnIndex: number,
  sampling: SampledTurn,
): Promise<TurnsEnd | undefined> {
  if (isTurnOver()) await takeTurn();
  const { generation, sampledAtMs } = sampling;
  const { codec } = play.setup.renderer;
  const { ids, stopText } = splitStop(play.setup.renderer, generation);
  const text = codec.decodeNow?.(ids) ?? (await codec.decode(ids));
  const turn = recordTurn(play, turnIndex, { sampling, text, stopText });
  try {
    const reading = await parseTurn(play, turn, generation);
    const cutOff = cutOffBy(sampling, play.setup.limits.onLength);
    if (cutOff !== undefined) {
      play.messages.push(reading.message);
      return cutOff;
    }
    const { intents } = reading;
    const { steps, note } = turn;
    const finish = generation.finish.type;
    const usage = {
      promptTokens: sampling.promptTokenCount,
      sampledTokens: generation.outputIds.length,
    };
    const given = { reading, finish, usage, steps, note, sampledAtMs };
    const performed = await performIntents(play, world, given);
    if (isLast(performed)) return await endWith(play, reading, performed);
    const lastSampledId = generation.outputIds.at(-1);
    const { observed } = performed;
    const end = await addObservations(play, { reading, observed, lastSampledId });
    return end ?? endByFormatErrors(play, intents);
  } finally {
    play.setup.onTurn?.(play.turns[turnIndex]!);
  }
}

/** Returns the reason why the episode ends with a turn that was cut short. `undefined` if it continues. */
function cutOffBy(
  { cutBy, generation }: SampledTurn,
  onLength: "end" | "close-and-continue",
): TurnsEnd | undefined {
  if (cutBy === "interrupt") return { outcome: "aborted", stopReason: "interrupted" };
  if (cutBy === "deadline") return { outcome: "truncated", stopReason: "deadline" };
  if (generation.finish.type !== "length" || onLength !== "end") return undefined;
  return { outcome: "truncated", stopReason: "length" };
}

/** True if the episode ends with the performed intents. */
function isLast({ failure, done, isLate }: Performed): boolean {
  return failure !== undefined || done !== undefined || isLate === true;
}

/**
 * Adds the last turn and its observations to the episode's messages. No prompt contains them.
 *
 * @throws RolloutError if the turn failed.
 */
async function endWith(
  play: Play,
  reading: Reading,
  { observed, failure, done }: Performed,
): Promise<TurnsEnd> {
  await tolerate(play, async () => {
    play.messages.push(reading.message);
    if (observed.length > 0) play.messages.push(...(await observe(play, observed)));
  });
  if (failure !== undefined) throw failure;
  return done === undefined
    ? { outcome: "truncated", stopReason: "deadline" }
    : { outcome: "completed", stopReason: done };
}

/** Counts a turn with malformed calls only. Ends the episode when there are too many. */
function endByFormatErrors(play: Play, intents: readonly Intent[]): TurnsEnd | undefined {
  if (!isFormatError(intents)) return undefined;
  play.formatErrorCount += 1;
  if (play.formatErrorCount < play.setup.limits.maxFormatErrors) return undefined;
  return { outcome: "truncated", stopReason: "format-errors" };
}

/** True if the turn tried to call tools and no call was correct. */
function isFormatError(intents: readonly Intent[]): boolean {
  return intents.every(
    (intent) =>
      intent.type === "ignore" || (intent.type === "refuse" && intent.status !== "extra-call"),
  );
}
