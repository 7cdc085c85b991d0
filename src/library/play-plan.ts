import { setMaxListeners } from "node:events";
import type { Episode } from "../episode/episode.ts";
import { playEpisode } from "../episode/play-episode.ts";
import { RolloutError } from "../errors.ts";
import { takeTurn } from "../internal/take-turn.ts";
import { withResolvers } from "../internal/with-resolvers.ts";
import { stringifyPythonJson } from "../python/json-stringify.ts";
import type { PlanRecord } from "../run/plan-run.ts";
import { RunFolder } from "../run/run-folder.ts";
import { RunTally, type RunProgress } from "../run/run-progress.ts";
import { runRollouts } from "../run/run-rollouts.ts";
import { hashOf } from "../setup/fingerprint.ts";
import { given } from "../setup/setting.ts";
import { describeSettings } from "../setup/stored-settings.ts";
import { readVersion } from "../setup/version.ts";
import type { OpenParts } from "./open-parts.ts";

/** How a plan is played. */
interface PlayOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: RunProgress) => void) | undefined;
}

/**
 * Plays a plan's episodes and hands each out as it ends; in a folder, where `out` names one, else
 * nowhere. Whoever stops asking stops the rest.
 *
 * @throws RolloutError where one episode after the other fails, as the last one did.
 */
export async function* playPlan(parts: OpenParts, options: PlayOptions): AsyncGenerator<Episode> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const onAbort = (): void => stop.abort(options.signal?.reason);
  if (options.signal?.aborted === true) onAbort();
  options.signal?.addEventListener("abort", onAbort, { once: true });
  const queue = new EpisodeQueue();
  const play = parts.conduct.dir === undefined ? playInMemory : playInFolder;
  const played = play(parts, {
    ...options,
    signal: stop.signal,
    onEpisode: (one) => queue.put(one),
  });
  void played.then(
    () => queue.end(),
    (error: unknown) => queue.end({ error }),
  );
  try {
    yield* queue;
    options.signal?.throwIfAborted();
  } finally {
    stop.abort(new DOMException("nobody asks for episodes any more", "AbortError"));
    options.signal?.removeEventListener("abort", onAbort);
    await played.catch(() => {});
  }
}

interface Told extends PlayOptions {
  readonly signal: AbortSignal;
  readonly onEpisode: (episode: Episode) => void;
}

async function playInFolder(parts: OpenParts, told: Told): Promise<void> {
  const { plan, setup, values, engine, conduct } = parts;
  const { environment, renderer } = setup;
  const { configuration, settings } = describeSettings(values);
  const tools = environment.tools.map(({ openai }) => openai);
  const record = { environment: environment.name, ...plan.scope } satisfies PlanRecord;
  const manifest = {
    format: 1,
    turnwright: await readVersion(),
    configuration,
    identity: {
      engine: engine.kind,
      ...given({ servedModel: engine.model }),
      chatTemplate: renderer.card.templateHash,
      tools: hashOf(stringifyPythonJson(tools, { ensureAscii: false })),
      policyText: hashOf(environment.policyText),
    },
    found: { engine, template: renderer.card, plan: record, settings },
  } as const;
  const { retryFailed, format } = conduct;
  await using folder = await RunFolder.open(conduct.dir!, manifest, {
    retryFailed,
    ...given({ format }),
  });
  const { concurrency, attempts, maxFailuresInRow } = conduct;
  const result = await runRollouts({
    ...{ plan, setup, folder, concurrency, attempts, maxFailuresInRow },
    ...{ signal: told.signal, onEpisode: told.onEpisode },
    ...given({ onProgress: told.onProgress }),
  });
  if (result.end === "too-many-failures") throw tooManyFailures(maxFailuresInRow);
}

async function playInMemory(parts: OpenParts, told: Told): Promise<void> {
  const { plan, setup, conduct } = parts;
  const tally = new RunTally({ planned: plan.length, now: setup.now });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const onAbort = (): void => stop.abort(told.signal.reason);
  told.signal.addEventListener("abort", onAbort, { once: true });
  if (told.signal.aborted) onAbort();
  let next = 0;
  let failuresInRow = 0;
  let failure: { readonly error: unknown } | undefined;
  const work = async (): Promise<void> => {
    while (next < plan.length && !stop.signal.aborted) {
      await takeTurn();
      const planned = plan.at(next++);
      tally.episodeStarted();
      told.onProgress?.(tally.progress());
      const episode = await playAttempts(parts, planned, { tally, signal: stop.signal });
      tally.episodeFinished(episode);
      failuresInRow = episode.outcome === "failed" ? failuresInRow + 1 : 0;
      told.onEpisode(episode);
      told.onProgress?.(tally.progress());
      if (failuresInRow >= conduct.maxFailuresInRow) throw tooManyFailures(failuresInRow, episode);
    }
  };
  const guarded = async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failure ??= { error };
      stop.abort(error);
    }
  };
  await Promise.all(Array.from({ length: Math.min(conduct.concurrency, plan.length) }, guarded));
  told.signal.removeEventListener("abort", onAbort);
  if (failure !== undefined && !told.signal.aborted) throw failure.error;
}

async function playAttempts(
  { setup, conduct }: OpenParts,
  planned: Parameters<typeof playEpisode>[0],
  { tally, signal }: { readonly tally: RunTally; readonly signal: AbortSignal },
): Promise<Episode> {
  const told = {
    ...setup,
    onTurn: (turn: { readonly sampledTokenCount: number }) =>
      tally.turnEnded(turn.sampledTokenCount),
  };
  for (let attempt = 1; ; attempt++) {
    const episode = await playEpisode({ ...planned, attempt }, told, { signal });
    if (episode.outcome !== "failed" || attempt >= conduct.attempts) return episode;
    tally.attemptRetried();
  }
}

function tooManyFailures(count: number, { failure }: Partial<Episode> = {}): RolloutError {
  const last = failure === undefined ? "" : `: ${failure.message}`;
  return new RolloutError(
    failure?.code ?? "environment/unreachable",
    `Cannot go on: ${count} episodes failed in a row${last}`,
  );
}

/** Episodes that wait to be taken. */
class EpisodeQueue implements AsyncIterable<Episode> {
  readonly #waiting: Episode[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #wake = withResolvers();

  put(episode: Episode): void {
    this.#waiting.push(episode);
    this.#wake.resolve();
  }

  end(how: { readonly error?: unknown } = {}): void {
    this.#ended = how;
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Episode> {
    for (;;) {
      const episode = this.#waiting.shift();
      if (episode !== undefined) {
        yield episode;
        continue;
      }
      if (this.#ended !== undefined) {
        if ("error" in this.#ended) throw this.#ended.error;
        return;
      }
      await this.#wake.promise;
      this.#wake = withResolvers();
    }
  }
}
