import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Engine } from "../../engine/engine.ts";
import type { Environment } from "../../environment/environment.ts";
import { UsageError } from "../../errors.ts";
import { parseTaskIndexes, planRun, type PlannedEpisode } from "../../run/plan-run.ts";
import { RunFolder, type RunManifest, type SinkFormat } from "../../run/run-folder.ts";
import { runRollouts, type RunResult } from "../../run/run-rollouts.ts";
import {
  buildAgent,
  buildEngine,
  buildLimits,
  buildRenderer,
  buildSampling,
} from "../build-run.ts";
import { buildUser } from "../build-user.ts";
import { loadEnvironment } from "../environments.ts";
import { stopOnInterrupt } from "../interrupt.ts";
import {
  addSettings,
  numberWithDefault,
  requiredText,
  resolveSettings,
  textOf,
  type Settings,
} from "../option.ts";
import { createProgressLine } from "../progress-line.ts";
import { operationalSettings, rolloutSettings } from "../rollout-settings.ts";
import { printRunSummary } from "../run-summary.ts";
import { writeOut } from "../write-out.ts";

/** `turnwright rollout`: plays episodes against an inference engine and writes training samples. */
export function addRolloutCommand(program: Command): void {
  const command = program
    .command("rollout")
    .summary("play episodes against an inference engine, write training samples")
    .description(
      "Plays many episodes at once and writes the exact sampled ids with their logprobs, loss mask\n" +
        "and reward. Settings come from flags, then from --config, then from the defaults.",
    )
    .option("--config <file>", "JSON file with the same names as the flags, without the dashes");
  addSettings(command, rolloutSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const configFile = flags["config"] as string | undefined;
    await rollout(await resolveSettings(rolloutSettings, flags, configFile));
  });
}

/** Plays the run that the settings describe, and prints its summary. */
export async function rollout(settings: Settings): Promise<void> {
  const now = () => Date.now();
  const environment = await loadEnvironment(
    requiredText(settings, "env", "the environment to play (see `env list`)"),
    textOf(settings, "data"),
  );
  const plan = buildPlan(settings, environment);
  const user = await buildUser(settings, environment);
  const engine = buildEngine(settings);
  try {
    const signal = stopOnInterrupt();
    const description = await engine.describe({ signal });
    const renderer = await buildRenderer(settings, now);
    const setup = {
      environment,
      user,
      engine,
      renderer,
      agent: buildAgent(settings, renderer),
      sampling: buildSampling(settings),
      limits: buildLimits(settings, description),
      now,
    };
    const manifest = await buildManifest(settings, {
      engine: description,
      template: renderer.card,
    });
    await using folder = await openFolder(settings, manifest, now);
    const result = await play(settings, { plan, setup, folder, signal });
    await report(settings, result, folder);
  } finally {
    await closeEngine(engine);
  }
}

function buildPlan(settings: Settings, environment: Environment): readonly PlannedEpisode[] {
  const split = textOf(settings, "split") ?? "test";
  const size = environment.splits[split];
  if (size === undefined) {
    const known = Object.keys(environment.splits).join(", ");
    throw new UsageError(
      `Cannot find split "${split}" of ${environment.name}: expected one of ${known}`,
    );
  }
  return planRun(environment, {
    split,
    taskIndexes: parseTaskIndexes(textOf(settings, "tasks") ?? "all", { split, size }),
    sampleCount: numberWithDefault(settings, "samples"),
    seed: numberWithDefault(settings, "seed"),
  });
}

async function buildManifest(
  settings: Settings,
  found: Readonly<Record<string, unknown>>,
): Promise<RunManifest> {
  const packageFile = new URL("../../../../package.json", import.meta.url);
  const { version } = JSON.parse(await readFile(packageFile, "utf8")) as { version: string };
  const configuration = Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) => value !== undefined && !operationalSettings.has(name),
    ),
  );
  return { format: 1, turnwright: version, configuration, found: { ...found, settings } };
}

async function openFolder(
  settings: Settings,
  manifest: RunManifest,
  now: () => number,
): Promise<RunFolder> {
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, "-");
  const dir = textOf(settings, "out") ?? path.join("runs", `${textOf(settings, "env")}-${stamp}`);
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
    concurrency: numberWithDefault(settings, "concurrency"),
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

async function report(settings: Settings, result: RunResult, folder: RunFolder): Promise<void> {
  if (settings["json"] === true) {
    const files = { samples: folder.samplesFile, slime: folder.slimeFile };
    const summary = { type: "summary", end: result.end, ...result.progress, files };
    await writeOut(`${JSON.stringify(summary)}\n`);
  } else {
    await writeOut(printRunSummary(result, folder));
  }
  if (result.end === "interrupted") process.exitCode = 130;
  if (result.end === "too-many-failures") process.exitCode = 1;
}

async function closeEngine(engine: Engine): Promise<void> {
  await engine.close();
}
