import type { Episode } from "../episode/episode.ts";
import { describeRun } from "../composition/describe-run.ts";
import { RolloutError } from "../errors.ts";
import { openLoadGate } from "../run/schedule/load-gate.ts";
import { toPromptTime } from "../run/prompt-time.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { withRecordedContext } from "../run/folder/run-manifest.ts";
import type { LiveRun } from "../run/live-run.ts";
import { startRun } from "../run/start-run.ts";
import type { EpisodeGroup } from "../run/schedule/group.ts";
import { openPlan } from "../run/schedule/planned-run.ts";
import { describePlan, sourceOf } from "../composition/config/run-epochs.ts";
import { readScopeConfig } from "../composition/config/scope-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import type { OpenParts } from "./open-parts.ts";
import { openRolloutTeacher } from "./open-rollout-teacher.ts";
import type { RolloutOptions } from "./rollout-options.ts";

/**
 * Plays the tasks of the options, and yields each group when it ends. Stops the run if the caller
 * leaves the loop.
 *
 * @param onStart - Called with the run before its first group.
 * @throws UsageError as `openRolloutTeacher()` does.
 * @throws RolloutError if too many episodes fail in a row, with the failure of the last one.
 * @throws the reason of `options.signal` if it aborts.
 */
export async function* playGroups(
  parts: OpenParts,
  options: RolloutOptions,
  onStart?: (run: LiveRun) => void,
): AsyncGenerator<EpisodeGroup, void, undefined> {
  const { plan, conduct, redactor, handedOut, setup: opened } = parts;
  const { signal, onEpisode, grouping, admission, staleness, redeliver } = options;
  const { source } = options;
  const isOwn = handedOut === undefined && conduct.dir !== undefined;
  await using own = isOwn ? await openFolder(parts, conduct.dir, options) : undefined;
  const folder = handedOut?.folder ?? own;
  await using teacher = await openRolloutTeacher(options, folder);
  const limits = withRecordedContext(opened.limits, folder?.manifest ?? {});
  const setup = { ...opened, limits };
  const { followLoad, attempts, maxFailuresInRow } = conduct;
  const { concurrency } = handedOut?.admission ?? conduct;
  const { sampleCount: size, seed } = plan.scope;
  const scope = readScopeConfig(parts.values);
  const { branchAt } = scope;
  await using gate = openLoadGate(setup, { concurrency, followLoad });
  const { traceSetup } = await import("../run/run-tracer.ts");
  let failed: Episode | undefined;
  const run = startRun({
    setup: traceSetup(setup, parts.engine.model),
    seed,
    maxFailuresInRow,
    source:
      (typeof source === "function" ? source(setup.environment) : source) ??
      sourceOf(scope, plan, setup.environment, folder?.finished),
    grouping: { size, attempts, ...withoutUndefined({ branchAt }), ...grouping },
    admission: { concurrency, ...(gate !== undefined && { gate }), ...admission },
    onEpisode(episode) {
      if (episode.outcome === "failed") failed = episode;
      teacher?.wake();
      return onEpisode?.(episode);
    },
    redactor: handedOut?.redactor ?? redactor,
    ...withoutUndefined({
      signal,
      staleness,
      redeliver,
      folder,
      player: handedOut?.player,
      onProgress: options.onProgress,
    }),
  });
  onStart?.(run);
  yield* run;
  const { end } = await run.result;
  const scored = await teacher?.finish();
  if (scored !== undefined) options.onTeacher?.(scored);
  if (end === "finished") handedOut?.finished?.();
  signal?.throwIfAborted();
  if (end === "too-many-failures") throw tooManyFailures(parts, failed);
}

/** Opens the folder of a run. The parts of the run were passed as objects. */
async function openFolder(
  parts: OpenParts,
  dir: string,
  { signal, source }: RolloutOptions,
): Promise<RunFolder> {
  const { plan, setup, values, engine, conduct, redactor } = parts;
  const { environment, promptTime, renderer, columns } = setup;
  const planned = { environment: environment.name, ...plan.scope };
  const described = await describeRun({
    settings: values,
    identity: await parts.identity(),
    engine,
    columns,
    renderer,
    ...(source === undefined
      ? { split: plan.scope.split, plan: describePlan(readScopeConfig(values), planned) }
      : { plan: openPlan }),
  });
  const time = promptTime && { promptTime: toPromptTime(promptTime) };
  const manifest = { ...described, ...time };
  const { retryFailed, record, format } = conduct;
  return await RunFolder.open(dir, redactor.clean(manifest), {
    retryFailed,
    record,
    lock: { ...withoutUndefined({ signal }), onWait: (why) => process.emitWarning(why) },
    ...(format !== undefined && { format }),
  });
}

function tooManyFailures({ conduct }: OpenParts, { failure }: Partial<Episode> = {}): RolloutError {
  const last = failure === undefined ? "" : `: ${failure.message}`;
  return new RolloutError(
    failure?.code ?? "environment/unreachable",
    `Cannot continue: ${conduct.maxFailuresInRow} episodes failed in a row${last}`,
  );
}
