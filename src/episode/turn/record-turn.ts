import type { Generation } from "../../engine/engine.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import type { TurnRecord, TurnStep } from "../episode.ts";
import type { Play } from "../play.ts";
import { describeTurn } from "./describe-turn.ts";
import type { SampledTurn } from "./sample-turn.ts";

/** A sampled turn with its growing record. */
export interface RecordedTurn {
  readonly turnIndex: number;
  readonly text: string;
  /** The text of the closing stop token. It is not part of `text`. */
  readonly stopText: string;
  /** The turn's steps so far. */
  readonly steps: TurnStep[];
  /** Adds members to the turn's record. */
  readonly note: (more: Partial<TurnRecord>) => void;
}

/** Records the sampled ids and the turn together, before any later step can fail. */
export function recordTurn(
  play: Play,
  turnIndex: number,
  { sampling, text, stopText }: Pick<RecordedTurn, "text" | "stopText"> & { sampling: SampledTurn },
): RecordedTurn {
  const { generation, promptTokenCount, engineMs } = sampling;
  const steps: TurnStep[] = [];
  play.recorder.appendTurn(generation);
  const about = { turnIndex, text, promptTokenCount, engineMs };
  const described = describeTurn(generation, about, { attemptCounts: {}, steps });
  const record: TurnRecord = Object.assign(described, { userMs: 0, environmentMs: 0 });
  play.turns.push(record);
  const note = (more: Partial<TurnRecord>): void => {
    Object.assign(record, more);
  };
  return { turnIndex, text, stopText, steps, note };
}

/** Splits off the text of the closing stop token. Only parsing uses the result. */
export function splitStop(
  { codec, stopTokenIds }: Pick<Renderer, "codec" | "stopTokenIds">,
  { outputIds }: Generation,
): { readonly ids: readonly number[]; readonly stopText: string } {
  const last = outputIds.at(-1);
  const isClosed = last !== undefined && stopTokenIds.includes(last);
  return isClosed
    ? { ids: outputIds.slice(0, -1), stopText: codec.tokenOf(last) ?? "" }
    : { ids: outputIds, stopText: "" };
}
