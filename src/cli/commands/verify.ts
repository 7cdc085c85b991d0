import { type Command, Option } from "commander";
import { stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import type { EngineDescription } from "../../engine/engine.ts";
import { verifyExport } from "../../audit/exported/verify-export.ts";
import { verifyRun } from "../../audit/verify-run.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import { isFolder, openStoredRun } from "../../report/read-run.ts";
import { rescoreFile, type FileRescoring } from "../../trajectory/rescore-file.ts";
import { verifyFile } from "../../trajectory/verify-file.ts";
import { createEngine } from "../../setup/create-engine.ts";
import { readEngineConfig } from "../../setup/engine-config.ts";
import { runSettings, type RunSettings } from "../../setup/run-config.ts";
import { createRunRedactor } from "../../setup/run-secrets.ts";
import { completeSettings, type GivenSettings, type Setting } from "../../setup/setting.ts";
import { storedSettings } from "../../setup/stored-settings.ts";
import { stopOnInterrupt } from "../interrupt.ts";
import { addSettings, givenSettings } from "../option.ts";
import { hideSecrets, writeOut } from "../write-out.ts";

/** What narrows the choice of a token; some engines report logprobs of what is left. */
const truncationNames = ["top-p", "top-k", "min-p"] as const;

const engineSettingNames: readonly string[] = [
  ...["engine", "url", "engine-mode", "engine-api", "served-model", "api-key-env", "gguf"],
  ...["threads", "sequences", "model", "max-context", "temperature", "engine-timeout"],
  ...truncationNames,
];

/** Settings of a rollout that decide what scores. */
const engineSettings: readonly Setting[] = runSettings.filter(({ name }) =>
  engineSettingNames.includes(name),
);

interface VerifyFlags extends Readonly<Record<string, unknown>> {
  readonly rescore?: true;
  readonly tolerance: string;
  readonly as?: ExportTarget;
  readonly run?: string;
  readonly policyVersion?: string;
}

/** `turnwright verify`: checks runs and files of samples against the invariants. */
export function defineVerify(command: Command): void {
  command
    .description(
      "Checks samples.jsonl files: trained ids are the sampled ids, the mask follows from the turns,\n" +
        "logprobs and policy versions are aligned, each turn's request was the ledger, nothing is\n" +
        "trained twice, and outcome, stop reason, reward and failure go together.\n\n" +
        "Of a run's folder it checks every file against the others as well: the samples against their\n" +
        "episodes (turns, counts, reward, the hash of each row), the episodes against the plan in\n" +
        "run.json and against the events that told of them, slime's rows against the samples, and the\n" +
        "sums of summary.json. A run that has not come to its end is said to be unfinished.\n\n" +
        "With --as, files that turnwright export wrote: each record's ids, mask, logprobs and versions\n" +
        "against each other, no row twice, and with --run against the run that they are of.\n\n" +
        "One JSON line a path; exit status 1 if anything is violated.\n\n" +
        "With --rescore an engine computes every sampled token's logprob again, and the largest and the\n" +
        "mean difference are reported; a row that cannot be scored is named and counts as a violation.\n" +
        "The engine and the temperature are those of the run that the file belongs to, unless flags name\n" +
        "others. Servers score prompts without a temperature: at another than 1 or 0 only where the\n" +
        "logprobs that they report have none either (vLLM's own default). What they compute in 16 bits\n" +
        "differs by how it was batched: raise --tolerance.",
    )
    .addOption(
      new Option("--as <trainer>", "the files are exports for this trainer").choices(
        Object.keys(exporters),
      ),
    )
    .option("--run <dir>", "with --as: compare the export with what this run gives")
    .option("--policy-version <n>", "with --run: the version that the export was given")
    .option("--rescore", "compare the recorded logprobs with an engine's (all but llama-cpp)")
    .option("--tolerance <nats>", "with --rescore: the largest difference that passes", "1e-5");
  addSettings(
    command,
    engineSettings.map((setting) => ({ ...setting, help: `with --rescore: ${setting.help}` })),
  );
  command.action(verify);
}

async function verify(paths: readonly string[], flags: VerifyFlags): Promise<void> {
  if (flags.as !== undefined) {
    await verifyExports(paths, flags.as, flags);
    return;
  }
  for (const given of paths) {
    const isRun = await isFolder(given);
    const result = isRun ? await verifyRun(given) : await verifyFile(given);
    const file = isRun ? path.join(given, "samples.jsonl") : given;
    const rescore = flags.rescore === true ? await rescoreWithEngine(file, flags) : undefined;
    await writeOut(`${JSON.stringify({ ...result, ...(rescore && { rescore }) })}\n`);
    if (result.violations.length > 0) process.exitCode = 1;
    if (rescore === undefined) continue;
    if (rescore.beyondToleranceCount > 0 || rescore.skipped.length > 0) process.exitCode = 1;
  }
}

async function verifyExports(
  files: readonly string[],
  as: ExportTarget,
  { run, policyVersion }: VerifyFlags,
): Promise<void> {
  const known = {
    ...(run === undefined ? {} : { run }),
    ...(policyVersion === undefined ? {} : { policyVersion: Number(policyVersion) }),
  };
  for (const file of files) {
    const result = await verifyExport(file, as, known);
    await writeOut(`${JSON.stringify(result)}\n`);
    if (result.violations.length > 0) process.exitCode = 1;
  }
}

async function rescoreWithEngine(file: string, flags: VerifyFlags): Promise<FileRescoring> {
  const tolerance = Number(flags.tolerance);
  if (!(tolerance >= 0)) {
    throw new UsageError(`Cannot use --tolerance ${flags.tolerance}: expected nats, 0 or more`);
  }
  const settings = await findSettings(file, flags);
  const config = readEngineConfig(settings);
  hideSecrets(createRunRedactor({ engine: config }, process.env));
  const engine = await createEngine(config, process.env);
  try {
    const signal = stopOnInterrupt();
    checkTruncation(settings, await engine.describe({ signal }));
    const { temperature } = settings;
    return await rescoreFile(file, { engine, temperature, tolerance, signal });
  } finally {
    await engine.close();
  }
}

/** @throws UsageError where the recorded logprobs are of a distribution that nothing can score. */
function checkTruncation(settings: RunSettings, engine: EngineDescription): void {
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

/** Flags before what the file's run was played with, before defaults. */
async function findSettings(file: string, flags: VerifyFlags): Promise<RunSettings> {
  const ofRun = await settingsOfRun(path.dirname(file));
  const given = await givenSettings(engineSettings, flags);
  const isSameEngine = given["engine"] === undefined || given["engine"] === ofRun["engine"];
  const { model, temperature } = ofRun;
  const played = isSameEngine ? ofRun : { model, temperature };
  return completeSettings(runSettings, { ...played, ...given });
}

async function settingsOfRun(dir: string): Promise<GivenSettings> {
  const isRun = await stat(path.join(dir, "run.json")).then(
    () => true,
    () => false,
  );
  return isRun ? storedSettings((await openStoredRun(dir)).manifest, engineSettings) : {};
}
