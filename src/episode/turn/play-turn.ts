import type { World } from "../../environment/environment.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { Play, TurnsEnd } from "../play.ts";
import { rendererOf } from "../renderer-of.ts";
import { addObservations } from "./add-observations.ts";
import { cutOffBy, endByFormatErrors, endWith, isLast } from "./end-turn.ts";
import { parseTurn } from "./parse-turn.ts";
import { performIntents } from "./perform-intents.ts";
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
  const renderer = rendererOf(play.setup);
  const { codec } = renderer;
  const { ids, stopText } = splitStop(renderer, generation);
  const text = codec.decodeNow?.(ids) ?? (await codec.decode(ids));
  const turn = recordTurn(play, turnIndex, { sampling, text, stopText });
  try {
    const reading = await parseTurn(play, turn, generation);
    const { type: finish } = generation.finish;
    const cutOff = cutOffBy({ ...sampling, finish }, play.setup.limits.onLength);
    if (cutOff !== undefined) {
      play.messages.push(reading.message);
      return cutOff;
    }
    const { intents } = reading;
    const { steps, note } = turn;
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
