import { memoryColumns, type ColumnStore } from "../../columns/column-store.ts";
import { checkGeneration } from "../../engine/check-sampled.ts";
import type { Engine, GenerateOptions, GenerateRequest, Generation } from "../../engine/engine.ts";
import { withEnd } from "../../engine/find-end.ts";
import { TokenNotifier } from "../../engine/token-notifier.ts";
import { RolloutError } from "../../errors.ts";
import { endedBy } from "../../async/ended-by.ts";
import { crossBoundary, type Boundary } from "../boundary.ts";
import type { CallWatch } from "./call-watch.ts";

/** A call to an engine for a turn, or for the rest of one. The watch provides the call's signal. */
export interface TurnCall extends Omit<GenerateOptions, "signal"> {
  readonly watch: CallWatch;
  readonly boundary: Boundary;
  readonly cutShort: AbortSignal;
  /** Keeps the bytes of side columns. Default: in memory. */
  readonly columnStore?: ColumnStore | undefined;
}

/**
 * Requests a turn from an engine, and checks the reply. Episodes and gateways request all their turns here. This is the
 * one check of sampled ids and logprobs on their way to a row. It runs within the call's time limit, because reading a
 * foreign reply may run foreign code. After the check, the store takes over the bytes of side columns.
 *
 * An engine that throws the reason of `cutShort`, as `fetch()` does, has returned the tokens that it reported before.
 * The engine's reports after the end of the call are ignored.
 *
 * @throws RolloutError with party `engine`, and the watch's reason if its caller aborts.
 * @throws UsageError if the store's disk fails.
 */
export async function requestTurn(
  engine: Engine,
  request: GenerateRequest,
  { watch, boundary, columnStore = memoryColumns, ...options }: TurnCall,
): Promise<Generation> {
  const { cutShort } = options;
  const notifier = new TokenNotifier(options);
  let generation: Generation;
  try {
    generation = await crossBoundary(watch, boundary, async (signal) => {
      let reply: Generation;
      try {
        reply = await engine.generate(request, { ...notifier.options, signal });
      } catch (error) {
        if (!endedBy(cutShort, error)) throw error;
        // The tokens so far carry no version of their own.
        reply = notifier.toGeneration(request, "");
      }
      const checked = withEnd(checkGeneration(reply, request), request);
      if (notifier.isStartOf(checked)) return checked;
      throw new RolloutError(
        "engine/bad-reply",
        "Cannot use the turn: the ids that the engine reported while sampling differ from those that it returned",
      );
    });
  } finally {
    notifier.mute();
  }
  const { columns } = generation;
  return columns === undefined
    ? generation
    : { ...generation, columns: await columnStore.keep(columns) };
}

/** Returns the failure of an engine that sampled no id of a turn. */
export function emptyReply(what: string): RolloutError {
  const message = `Cannot ${what}: the engine sampled nothing, expected at least one id`;
  return new RolloutError("engine/bad-reply", message, { retryable: true });
}
