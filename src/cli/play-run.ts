import path from "node:path";
import type { EngineDescription } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import {
  parseTaskIndexes,
  planRun,
  type PlannedEpisode,
  type PlanRecord,
  type RunScope,
} from "../run/plan-run.ts";
import { RunFolder, type RunManifest, type SinkFormat } from "../run/run-folder.ts";
import { runRollouts, type RunResult } from "../run/run-rollouts.ts";
import { buildAgent } from "./build-agent.ts";
import { buildEngine, concurrencyOf } from "./build-engine.ts";
import { buildLimits, buildRenderer, buildSampling } from "./build-run.ts";
import { buildUser } from "./build-user.ts";
import { loadEnvironment } from "./environments.ts";
import { stopOnInterrupt } from "./interrupt.ts";
import { numberWithDefault, requiredText, textOf, type Settings } from "./option.ts";
import { createProgressLine } from "./progress-line.ts";
import { operationalSettings } from "./rollout-settings.ts";
import { readVersion } from "./version.ts";

/** A run that was played, with what it was played in. */
export interface PlayedRun {
  readonly result: RunResult;
  readonly folder: RunFolder;
  readonly environment: Environment;
  readonly plan: readonly PlannedEpisode[];
}

/**
 * Plays the run that the settings describe, or what is left of it, and hands it to `finish` while its
 * folder is still open. Sets the exit status where the run did not come to its end.
 *
 * @throws UsageError for settings that cannot be used together or with the folder.
 */
export async function playRun(
  settings: Settings,
  finish: (run: PlayedRun) => Promise<void>,
): Promise<void> {
  const now = () => Date.now();
  const environment = await loadEnvironment(
    requiredText(settings, "env", "the environment to play (see `env list`)"),
    textOf(settings, "data"),
  );
  const plan = buildPlan(settings, environment);
  const user = await buildUser(settings, environment);
  const engine = await buildEngine(settings);
  try {
    const signal = stopOnInterrupt();
    const renderer = await buildRenderer(settings, now);
    const agent = await buildAgent(settings, { renderer, environment });
    const description = await engine.describe({ signal });
    warn(settings, [...renderer.card.warnings, ...warningsOf(description, settings)]);
    const setup = {
      environment,
      user,
      engine,
      renderer,
      agent,
      sampling: buildSampling(settings),
      limits: buildLimits(settings, description),
      now,
    };
    const planRecord: PlanRecord = {
      environment: environment.name,
      ...buildScope(settings, environment),
    };
    const manifest = await buildManifest(settings, {
      engine: description,
      template: renderer.card,
      vocabularySize: renderer.codec.vocabularySize,
      plan: planRecord,
    });
    await using folder = await openFolder(settings, { manifest, environment, now });
    const result = await play(settings, { plan, setup, folder, signal });
    await finish({ result, folder, environment, plan });
    if (result.end === "interrupted") process.exitCode = 130;
    const { scored, outcomes } = result.progress;
    const isAllFailed = scored === 0 && outcomes.failed > 0;
    if (result.end === "too-many-failures" || isAllFailed) process.exitCode = 1;
  } finally {
    await engine.close();
  }
}

function warningsOf(engine: EngineDescription, settings: Settings): readonly string[] {
  const temperature = numberWithDefault(settings, "temperature");
  const warnings = engine.warnings ?? [];
  if (engine.logprobConvention !== "raw" || temperature === 1 || temperature === 0) return warnings;
  return [
    ...warnings,
    `${engine.kind} gives logprobs of the untempered distribution, and turns are sampled at ` +
      `temperature ${temperature}: they are not the logprobs of what was sampled from`,
  ];
}

/** What was found about engine and template goes before the run, where people still can act on it. */
function warn(settings: Settings, warnings: readonly string[]): void {
  if (settings["quiet"] === true || settings["json"] === true) return;
  for (const warning of warnings) process.stderr.write(`note: ${warning}\n`);
}

/**
 * The episodes that the settings describe.
 *
 * @throws UsageError for a split or tasks that the environment does not have.
 */
export function buildPlan(settings: Settings, environment: Environment): readonly PlannedEpisode[] {
  return planRun(environment, buildScope(settings, environment));
}

function buildScope(settings: Settings, environment: Environment): RunScope {
  const split = textOf(settings, "split") ?? "test";
  const size = environment.splits[split];
  if (size === undefined) {
    const known = Object.keys(environment.splits).join(", ");
    throw new UsageError(
      `Cannot find split "${split}" of ${environment.name}: expected one of ${known}`,
    );
  }
  return {
    split,
    taskIndexes: parseTaskIndexes(textOf(settings, "tasks") ?? "all", { split, size }),
    sampleCount: numberWithDefault(settings, "samples"),
    seed: numberWithDefault(settings, "seed"),
  };
}

async function buildManifest(
  settings: Settings,
  found: Readonly<Record<string, unknown>>,
): Promise<RunManifest> {
  const configuration = Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) => value !== undefined && !operationalSettings.has(name),
    ),
  );
  return {
    format: 1,
    turnwright: await readVersion(),
    configuration,
    found: { ...found, settings },
  };
}

async function openFolder(
  settings: Settings,
  run: {
    readonly manifest: RunManifest;
    readonly environment: Environment;
    readonly now: () => number;
  },
): Promise<RunFolder> {
  const { manifest, environment, now } = run;
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, "-");
  const dir = textOf(settings, "out") ?? path.join("runs", `${environment.name}-${stamp}`);
  const format = textOf(settings, "format") as SinkFormat | undefined;
  return await RunFolder.open(dir, manifest, {
    retryFailed: settings["retry-failed"] === true,
    ...(format === undefined ? {} : { format }),
  });
}

async function play(
  settings: Settings,
  run: Pick<Parameters<typeof runRollouts>[0], "plan" | "setup" | "folder" | "signal">,
): Promise<RunResult> {
  const isJson = settings["json"] === true;
  const isQuiet = settings["quiet"] === true || isJson;
  const line = createProgressLine({ stream: process.stderr, now: run.setup.now });
  if (run.folder.finished.length > 0 && !isQuiet) {
    process.stderr.write(
      `resuming ${run.folder.dir}: ${run.folder.finished.length} episodes are done\n`,
    );
  }
  const result = await runRollouts({
    ...run,
    concurrency: concurrencyOf(settings),
    attempts: numberWithDefault(settings, "attempts"),
    maxFailuresInRow: numberWithDefault(settings, "max-failures"),
    onProgress: (progress) => {
      if (!isQuiet) line.update(progress);
    },
    onEpisode: (episode) => {
      if (!isJson) return;
      const { rolloutId, outcome, stopReason, reward, failure } = episode;
      const event = { type: "episode", rolloutId, outcome, stopReason, reward, failure };
      process.stdout.write(`${JSON.stringify(event)}\n`);
    },
  });
  if (!isQuiet) line.end();
  return result;
}
