import type { Intent, Observed, Reading } from "../../agent/agent.ts";
import type { Generation } from "../../engine/engine.ts";
import type { World } from "../../environment/environment.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { checkReading } from "../check/check-agent.ts";
import { addObservations, observe } from "./add-observations.ts";
import type { TurnRecord, TurnStep } from "../episode.ts";
import { performIntents } from "./perform-intents.ts";
import { callAgent, tolerate, type Play, type TurnsEnd } from "../play.ts";
import { recordForm } from "./record-form.ts";
import { sampleTurn, type Sampling } from "./sample-turn.ts";

type Sampled = Extract<Sampling, { type: "sampled" }>;

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
  sampling: Sampled,
): Promise<TurnsEnd | undefined> {
  if (isTurnOver()) await takeTurn();
  const { ids, stopText } = splitStop(play.setup.renderer, sampling.generation);
  const { codec } = play.setup.renderer;
  const text = codec.decodeNow?.(ids) ?? (await codec.decode(ids));
  const turn = recordTurn(play, turnIndex, { sampling, text, stopText });
  try {
    return await actOnTurn(play, world, turn, sampling);
  } finally {
    play.setup.onTurn?.(play.turns[turnIndex]!);
  }
}

interface RecordedTurn {
  readonly turnIndex: number;
  readonly text: string;
  /** The text of the closing stop token. It is not part of `text`. */
  readonly stopText: string;
  /** The turn's steps so far. */
  readonly steps: TurnStep[];
  /** Adds to the turn's record. */
  readonly note: (more: Partial<TurnRecord>) => void;
}

/** Records the sampled ids and the turn together, before any later step can fail. */
function recordTurn(
  play: Play,
  turnIndex: number,
  { sampling, text, stopText }: Pick<RecordedTurn, "text" | "stopText"> & { sampling: Sampled },
): RecordedTurn {
  const { generation, promptTokenCount, engineMs } = sampling;
  const steps: TurnStep[] = [];
  const { cachedTokenCount, discarded, finish, outputIds, queueMs } = generation;
  const interruptionCount = countInterruptions(generation);
  play.recorder.appendTurn(generation);
  const record: TurnRecord = {
    turnIndex,
    text,
    finish: finish.type,
    sampledTokenCount: outputIds.length,
    promptTokenCount,
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
    attemptCounts: {},
    steps,
    ...(discarded.length > 0 && { discarded }),
    ...(interruptionCount > 0 && { interruptionCount }),
    pieces: generation.pieces,
    engineMs,
    ...(queueMs !== undefined && { queueMs }),
    userMs: 0,
    environmentMs: 0,
  };
  play.turns.push(record);
  const note = (more: Partial<TurnRecord>): void => {
    Object.assign(record, more);
  };
  return { turnIndex, text, stopText, steps, note };
}

/** Counts the interruptions of a turn. After each one, the turn continued with another request. */
function countInterruptions({ pieces }: Generation): number {
  if (pieces.length <= 1) return 0;
  return Math.max(new Set(pieces.map(({ requestId }) => requestId)).size - 1, 0);
}

/** Splits off the closing stop token. The result is only for parsing. */
function splitStop(
  { codec, stopTokenIds }: Renderer,
  { outputIds }: Generation,
): { readonly ids: readonly number[]; readonly stopText: string } {
  const last = outputIds.at(-1);
  const isClosed = last !== undefined && stopTokenIds.includes(last);
  return isClosed
    ? { ids: outputIds.slice(0, -1), stopText: codec.tokenOf(last) ?? "" }
    : { ids: outputIds, stopText: "" };
}

async function actOnTurn(
  play: Play,
  world: World,
  turn: RecordedTurn,
  sampling: Sampled,
): Promise<TurnsEnd | undefined> {
  const { generation, sampledAtMs } = sampling;
  const { maxFormatErrors, onLength } = play.setup.limits;
  const reading = await parseTurn(play, turn, generation);
  const cutOff = cutOffBy(sampling, onLength);
  if (cutOff !== undefined) {
    play.messages.push(reading.message);
    return cutOff;
  }
  const { intents } = reading;
  const { steps, note } = turn;
  const acted = await performIntents(play, world, { intents, steps, note, sampledAtMs });
  if (acted.failure !== undefined || acted.done !== undefined || acted.isLate === true) {
    await tolerate(play, async () => await showLast(play, reading, acted.observed));
    if (acted.failure !== undefined) throw acted.failure;
    return acted.done === undefined
      ? { outcome: "truncated", stopReason: "deadline" }
      : { outcome: "completed", stopReason: acted.done };
  }
  const lastSampledId = generation.outputIds.at(-1);
  const { observed } = acted;
  const end = await addObservations(play, { reading, observed, lastSampledId });
  if (end !== undefined) return end;
  if (isFormatError(intents) && ++play.formatErrorCount >= maxFormatErrors) {
    return { outcome: "truncated", stopReason: "format-errors" };
  }
  return undefined;
}

/** Returns the reason why the episode ends with a turn that was cut short. `undefined` if it continues. */
function cutOffBy(
  { cutBy, generation }: Sampled,
  onLength: "end" | "close-and-continue",
): TurnsEnd | undefined {
  if (cutBy === "interrupt") return { outcome: "aborted", stopReason: "interrupted" };
  if (cutBy === "deadline") return { outcome: "truncated", stopReason: "deadline" };
  if (generation.finish.type !== "length" || onLength !== "end") return undefined;
  return { outcome: "truncated", stopReason: "length" };
}

async function parseTurn(
  play: Play,
  { turnIndex, text, stopText, note }: RecordedTurn,
  { finish, outputIds }: Generation,
): Promise<Reading> {
  const { agent, renderer } = play.setup;
  if (isTurnOver()) await takeTurn();
  const what = `read turn ${turnIndex}`;
  const read = callAgent(play, what, () =>
    agent.read({
      text,
      stopText,
      tools: play.tools,
      turnIndex,
      finish: finish.type,
      reasoningOpened: play.reasoningOpened,
    }),
  );
  // Awaits only promises: most agents answer at once, and an await costs a round of the event loop.
  const given = read instanceof Promise ? await read : read;
  const place = `agent.read() of ${agent.strategy}`;
  const checked = callAgent(play, what, () =>
    checkReading(given, place, text.length + stopText.length),
  );
  const reading = checked instanceof Promise ? await checked : checked;
  const recorded = recordForm(reading.form, renderer.codec, {
    ids: outputIds,
    text: text + stopText,
  });
  const form = recorded instanceof Promise ? await recorded : recorded;
  const { attemptCounts, reasoning } = reading;
  note(reasoning === "" ? { attemptCounts } : { reasoning, attemptCounts });
  note(form);
  return reading;
}

/** Adds the last turn and its observations to the episode's messages. No prompt contains them. */
async function showLast(
  play: Play,
  reading: Reading,
  observed: readonly Observed[],
): Promise<void> {
  play.messages.push(reading.message);
  if (observed.length > 0) play.messages.push(...(await observe(play, observed)));
}

/** True if the turn tried to call tools and no call was correct. */
function isFormatError(intents: readonly Intent[]): boolean {
  return intents.every(
    (intent) =>
      intent.type === "ignore" || (intent.type === "refuse" && intent.status !== "extra-call"),
  );
}
