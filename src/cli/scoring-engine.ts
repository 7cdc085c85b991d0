import { stat } from "node:fs/promises";
import path from "node:path";
import { specsIn, type ColumnSpecs } from "../columns/column-specs.ts";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import { UsageError } from "../errors.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { openStoredRun } from "../report/read-run.ts";
import { createEngine } from "../composition/create-engine.ts";
import { readEngineConfig } from "../composition/config/engine-config.ts";
import { runSettings, type RunSettings } from "../composition/config/run-config.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import {
  completeSettings,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";
import { storedSettings } from "../composition/config/stored-settings.ts";
import { givenSettings } from "./option.ts";
import { hideSecrets } from "./write-out.ts";

/**
 * The settings that restrict the choice of a token. Some engines report logprobs of the remaining tokens.
 */
const truncationNames = ["top-p", "top-k", "min-p"] as const;

const engineSettingNames: readonly string[] = [
  "engine",
  "url",
  "engine-mode",
  "engine-api",
  "served-model",
  "api-key-env",
  "gguf",
  "threads",
  "sequences",
  "model",
  "max-context",
  "temperature",
  "engine-timeout",
  ...truncationNames,
];

/** The settings of a rollout that affect scoring. */
export const engineSettings: readonly Setting[] = runSettings.filter(({ name }) =>
  engineSettingNames.includes(name),
);

/** An engine that recomputes the logprobs of a run. The caller closes it. */
export interface ScoringEngine {
  readonly engine: Engine;
  /** The temperature at which the tokens were sampled. */
  readonly temperature: number;
  /** The run's side columns. Empty if it has none. */
  readonly columns: ColumnSpecs;
}

/**
 * Opens the engine that scores a run's samples: the run's own engine, unless flags name another.
 *
 * @throws UsageError if the recorded logprobs cannot be computed again.
 */
export async function openScoringEngine(
  dir: string,
  flags: GivenSettings,
  { signal }: { readonly signal: AbortSignal },
): Promise<ScoringEngine> {
  const manifest = await findManifest(dir);
  const columns = specsIn(manifest?.found);
  const settings = await findSettings(manifest, flags);
  const config = readEngineConfig(settings);
  hideSecrets(createRunRedactor({ engine: config }, process.env));
  const engine = await createEngine(config, process.env);
  try {
    checkTruncation({ settings, columns }, await engine.describe({ signal }));
    return { engine, temperature: settings.temperature, columns };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/**
 * Checks that the recorded logprobs can be computed again.
 * @throws UsageError if the engine reports logprobs of a distribution that top-p, top-k or min-p
 *   cut.
 */
function checkTruncation(
  { settings, columns }: { readonly settings: RunSettings; readonly columns: ColumnSpecs },
  engine: EngineDescription,
): void {
  if (columns.keptTokens !== undefined) {
    throw new UsageError(
      `Cannot score samples with ${engine.kind} again: the run keeps the tokens of --top-k (--columns keptTokens), ` +
        "and its logprobs are over these sets, which cannot be scored",
    );
  }
  if (engine.logprobConvention !== "processed") return;
  for (const name of truncationNames) {
    const value = settings[name];
    if (value === engineSettings.find((setting) => setting.name === name)?.default) continue;
    throw new UsageError(
      `Cannot score samples with ${engine.kind} again: it reports logprobs of what --${name} ` +
        `${value} left, which cannot be scored`,
    );
  }
}

/** Returns the settings for scoring. Flags override the run's settings, which override defaults. */
async function findSettings(
  manifest: RunManifest | undefined,
  flags: GivenSettings,
): Promise<RunSettings> {
  const ofRun = manifest === undefined ? {} : storedSettings(manifest, engineSettings);
  const given = await givenSettings(engineSettings, flags);
  const isSameEngine = given["engine"] === undefined || given["engine"] === ofRun["engine"];
  const { model, temperature } = ofRun;
  const played = isSameEngine ? ofRun : { model, temperature };
  return completeSettings(runSettings, { ...played, ...given });
}

/** Reads `run.json`; returns `undefined` if the folder has none. */
async function findManifest(dir: string): Promise<RunManifest | undefined> {
  const isRun = await stat(path.join(dir, "run.json")).then(
    () => true,
    () => false,
  );
  return isRun ? (await openStoredRun(dir)).manifest : undefined;
}
