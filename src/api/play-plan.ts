import { setMaxListeners } from "node:events";
import type { Episode } from "../episode/episode.ts";
import { ownBug, RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { EpisodeGroup } from "../run/schedule/group.ts";
import { openLoadGate } from "../run/schedule/load-gate.ts";
import { toPromptTime } from "../run/prompt-time.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { withRecordedContext } from "../run/folder/run-manifest.ts";
import type { RunProgress } from "../run/run-progress.ts";
import type { RunResult } from "../run/live-run.ts";
import { startRun } from "../run/start-run.ts";
import { describePlan, sourceOf } from "../composition/config/run-epochs.ts";
import { readScopeConfig } from "../composition/config/scope-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { describeSettings } from "../composition/config/stored-settings.ts";
import { readVersion } from "../composition/version.ts";
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
export function playPlan(parts: OpenParts, options: PlayOptions): AsyncGenerator<Episode> {
  return play(parts, options, (put) => ({ onEpisode: put }));
}

/**
 * The same, with all attempts at a task together: those too that an earlier start finished, where this one
 * plays the rest of them.
 */
export function playGroups(parts: OpenParts, options: PlayOptions): AsyncGenerator<EpisodeGroup> {
  return play(parts, options, (put) => ({ onGroup: put }));
}

interface Listeners {
  readonly onEpisode?: (episode: Episode) => void;
  readonly onGroup?: (group: EpisodeGroup) => void;
}

async function* play<Item>(
  parts: OpenParts,
  options: PlayOptions,
  listen: (put: (item: Item) => void) => Listeners,
): AsyncGenerator<Item> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const onAbort = (): void => stop.abort(options.signal?.reason);
  if (options.signal?.aborted === true) onAbort();
  options.signal?.addEventListener("abort", onAbort, { once: true });
  const queue = new ItemQueue<Item>();
  const listeners = listen((item) => queue.put(item));
  const onEpisode = (episode: Episode): void => {
    failed = episode.outcome === "failed" ? episode : failed;
    listeners.onEpisode?.(episode);
  };
  const played = playAll(parts, { ...options, ...listeners, signal: stop.signal, onEpisode });
  let failed: Episode | undefined;
  void played.then(
    ({ end }) => {
      if (end === "too-many-failures") queue.end({ error: tooManyFailures(parts, failed) });
      else if (end === "finished" || stop.signal.aborted) queue.end();
      else queue.end({ error: ownBug(`a run that nobody stopped ended as ${end}`) });
    },
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

interface Told extends PlayOptions, Listeners {
  readonly signal: AbortSignal;
  readonly onEpisode: (episode: Episode) => void;
}

async function playAll(parts: OpenParts, told: Told): Promise<RunResult> {
  const { dir } = parts.conduct;
  const { plan, conduct, redactor, handedOut } = parts;
  const isOwn = handedOut === undefined && dir !== undefined;
  await using own = isOwn ? await openFolder(parts, dir, told.signal) : undefined;
  const folder = handedOut?.folder ?? own;
  const limits = withRecordedContext(parts.setup.limits, folder?.manifest ?? {});
  const setup = { ...parts.setup, limits };
  const { followLoad, attempts, maxFailuresInRow } = conduct;
  const { concurrency } = handedOut?.admission ?? conduct;
  const { sampleCount, seed } = plan.scope;
  const scope = readScopeConfig(parts.values);
  await using gate = openLoadGate(setup, { concurrency, followLoad });
  const { traceSetup } = await import("../run/run-tracer.ts");
  const run = startRun({
    setup: traceSetup(setup, parts.engine.model),
    seed,
    maxFailuresInRow,
    redactor,
    source: sourceOf(scope, plan, setup.environment, folder?.finished),
    grouping: { size: sampleCount, attempts, ...withoutUndefined({ branchAt: scope.branchAt }) },
    admission: { concurrency, ...(gate !== undefined && { gate }) },
    signal: told.signal,
    onEpisode: told.onEpisode,
    ...withoutUndefined({ folder, onProgress: told.onProgress }),
    ...withoutUndefined({ player: handedOut?.player, redactor: handedOut?.redactor }),
  });
  // Where nobody takes its groups, they are not held until it ends.
  for await (const group of run) told.onGroup?.(group);
  return await run.result;
}

/** The folder of a run whose parts were given, rather than named in a configuration. */
async function openFolder(parts: OpenParts, dir: string, signal: AbortSignal): Promise<RunFolder> {
  const { plan, setup, values, engine, conduct, redactor } = parts;
  const { environment, promptTime, renderer } = setup;
  const { configuration, settings } = describeSettings(values);
  const scope = readScopeConfig(values);
  const planned = describePlan(scope, { environment: environment.name, ...plan.scope });
  const manifest = {
    format: 1,
    turnwright: await readVersion(),
    configuration,
    identity: await parts.identity(),
    found: {
      engine,
      template: renderer.card,
      plan: planned,
      settings,
      vocabularySize: renderer.codec.vocabularySize,
    },
    ...(promptTime && { promptTime: toPromptTime(promptTime) }),
  } as const;
  const { retryFailed, record, format } = conduct;
  return await RunFolder.open(dir, redactor.clean(manifest), {
    retryFailed,
    record,
    lock: { signal, onWait: (why) => process.emitWarning(why) },
    ...(format !== undefined && { format }),
  });
}

function tooManyFailures({ conduct }: OpenParts, { failure }: Partial<Episode> = {}): RolloutError {
  const last = failure === undefined ? "" : `: ${failure.message}`;
  return new RolloutError(
    failure?.code ?? "environment/unreachable",
    `Cannot go on: ${conduct.maxFailuresInRow} episodes failed in a row${last}`,
  );
}

/** What waits to be taken. */
class ItemQueue<Item> implements AsyncIterable<Item> {
  readonly #waiting: Item[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #wake = withResolvers();

  put(item: Item): void {
    this.#waiting.push(item);
    this.#wake.resolve();
  }

  end(how: { readonly error?: unknown } = {}): void {
    this.#ended = how;
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (;;) {
      const item = this.#waiting.shift();
      if (item !== undefined) {
        yield item;
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
