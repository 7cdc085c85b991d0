import { type Command, Option } from "commander";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { readSpecialTokens } from "../../verify/exported/special-tokens.ts";
import { verifyExport } from "../../verify/exported/verify-export.ts";
import {
  assertFileOfSamples,
  describeLoneCheck,
  describeLoneExport,
} from "../../verify/lone-file.ts";
import { verifyRun } from "../../verify/verify-run.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import { isFolder } from "../../report/read-run.ts";
import { rescoreRoutes, type RouteRescoring } from "../../verify/rescore-routes.ts";
import { rescoreFile, type FileRescoring } from "../../trajectory/rescore-file.ts";
import { readStored } from "../../run/disk/read-jsonl.ts";
import { verifyFile } from "../../trajectory/verify-file.ts";
import { stopOnInterrupt, stopsAtOnce } from "../interrupt.ts";
import { addSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { engineSettings, openScoringEngine } from "../scoring-engine.ts";
import {
  addTeacherOptions,
  readTeacherChoice,
  toDiscount,
  type TeacherFlags,
} from "../export-flags.ts";
import { terminalStyle } from "../../report/text-style.ts";
import { verificationText, type Verification } from "../verify/verification-text.ts";
import { writeResult } from "../write-out.ts";

interface VerifyFlags extends Readonly<Record<string, unknown>>, TeacherFlags {
  readonly json?: true;
  readonly rescore?: true;
  readonly tolerance: string;
  readonly as?: ExportTarget;
  readonly run?: string;
  readonly policyVersion?: string;
  readonly promptText?: string;
  readonly turnDiscount?: number;
  readonly turnRewards?: true;
  readonly model?: string;
  readonly temperature?: number;
}

/** `turnwright verify`: checks runs and sample files against the invariants. */
export function defineVerify(command: Command): void {
  command
    .description(
      "Checks samples.jsonl files: trained ids are the sampled ids, the mask follows from the turns, " +
        "logprobs and policy versions are aligned, each turn's request had exactly the ids before it, nothing " +
        "is trained twice, and outcome, stop reason, reward and failure go together.\n\n" +
        "Of a run's folder it checks every file against the others as well: the samples against their " +
        "episodes (turns, counts, reward, the hash of each row), the episodes against the plan in " +
        "run.json and against their events, slime's rows against the samples, the lines of " +
        "recording.jsonl by their hashes (`recorded` counts the finished episodes that it holds), and the " +
        "sums of summary.json. A run that has not ended is reported as unfinished; it may be " +
        "played meanwhile.\n\n" +
        "With --as, files that turnwright export wrote: each record's ids, mask, logprobs and versions " +
        "against each other, no row twice, with --run against the run that they are of, and with --model " +
        "the special tokens by that folder's tokenizer.\n\n" +
        "A samples.jsonl file is checked alone, also within a run's folder, and an export without --run: a " +
        "`note` says so, since a changed reward shows only against the run.\n\n" +
        "Prints a summary a path on a terminal, and one JSON line a path elsewhere; exit status 1 if anything is " +
        "violated.\n\n" +
        "With --rescore an engine computes every sampled token's logprob again, and the largest and the " +
        "mean difference are reported; a row that cannot be scored is named and counts as a violation. " +
        "The engine and the temperature are those of the run that the file belongs to, unless flags name " +
        "others. Servers score prompts without a temperature: at another than 1 or 0 only where the " +
        "logprobs that they report have none either (vLLM's own default). What they compute in 16 bits " +
        "differs by how it was batched: raise --tolerance. The routed experts of a run that has them " +
        "(--columns) are requested again, too, and the share that is equal is reported.",
    )
    .option("--json", "print JSON lines on a terminal, too")
    .addOption(
      new Option("--as <trainer>", "the files are exports for this trainer").choices(
        Object.keys(exporters),
      ),
    )
    .option("--run <dir>", "with --as: compare the export with what this run gives")
    .option("--policy-version <n>", "with --run: the version that the export was given")
    .addOption(
      new Option(
        "--turn-discount <g>",
        "with --as: the discount that the export was given",
      ).argParser(toDiscount),
    )
    .option("--turn-rewards", "with --run: the export has rewards of turns")
    .option("--prompt-text <model>", "with --run: the folder that the export was given")
    .option("--rescore", "compare the recorded logprobs with an engine's (all but llama-cpp)")
    .option("--tolerance <nats>", "with --rescore: the largest difference that passes", "1e-5");
  addTeacherOptions(command, "with --as: ");
  addSettings(
    command,
    engineSettings.map((setting) => ({
      ...setting,
      help:
        setting.name === "temperature"
          ? `with --rescore: ${setting.help}; with --run: the one that the export was given`
          : `with --rescore: ${setting.help}`,
    })),
    groupSettings,
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
    const result = isRun ? await verifyRun(given) : await verifyLoneFile(given);
    const file = isRun ? path.join(given, "samples.jsonl") : given;
    const rescore = flags.rescore === true ? await rescoreWithEngine(file, flags) : undefined;
    await print({ ...result, ...(rescore && { rescore }) }, flags);
    if (result.violations.length > 0) process.exitCode = 1;
    if (rescore === undefined) continue;
    if (rescore.beyondToleranceCount > 0 || rescore.skipped.length > 0) process.exitCode = 1;
  }
}

/** Prints a result: for people on a terminal, and for programs elsewhere. */
async function print(result: Verification, { json }: Pick<VerifyFlags, "json">): Promise<void> {
  await writeResult(result, { json, text: () => verificationText(result, terminalStyle) });
}

/** Checks one file, and says which checks need the complete run. */
async function verifyLoneFile(file: string) {
  await assertFileOfSamples(file);
  const { violations, ...read } = await verifyFile(file, { read: readStored });
  return { ...read, note: await describeLoneCheck(file, read.samples), violations };
}

async function verifyExports(
  files: readonly string[],
  as: ExportTarget,
  { run, policyVersion, model, promptText, temperature, ...more }: VerifyFlags,
): Promise<void> {
  const { loadTokenCodec } = await import("../../tokenizer/load-codec.ts");
  const codec = promptText === undefined ? undefined : await loadTokenCodec(promptText);
  const choice = readTeacherChoice(more);
  const known = {
    ...(model !== undefined && { special: await readSpecialTokens(model) }),
    ...(codec && { spell: async (ids: readonly number[]) => await codec.decode(ids) }),
    ...(run !== undefined && { run }),
    ...(choice && { teacher: choice }),
    ...(policyVersion !== undefined && { policyVersion: Number(policyVersion) }),
    ...(temperature !== undefined && { temperature }),
    ...(more.turnDiscount !== undefined && { turnDiscount: more.turnDiscount }),
    ...(more.turnRewards && { hasTurnRewards: true }),
    versionRemedy: "--policy-version N",
    temperatureRemedy: "--temperature T",
  };
  for (const file of files) {
    const { violations, ...read } = await verifyExport(file, as, known);
    const note = run === undefined ? { note: describeLoneExport(read.records) } : {};
    await print({ ...read, ...note, violations }, more);
    if (violations.length > 0) process.exitCode = 1;
  }
  await codec?.close?.();
}

async function rescoreWithEngine(
  file: string,
  flags: VerifyFlags,
): Promise<FileRescoring & { readonly routes?: RouteRescoring }> {
  const tolerance = Number(flags.tolerance);
  if (!(tolerance >= 0)) {
    throw new UsageError(`Cannot use --tolerance ${flags.tolerance}: expected nats, 0 or more`);
  }
  const signal = stopOnInterrupt(stopsAtOnce);
  const dir = path.dirname(file);
  const { engine, temperature, columns } = await openScoringEngine(dir, flags, { signal });
  try {
    const options = { engine, temperature, tolerance, signal, read: readStored };
    const rescoring = await rescoreFile(file, options);
    const { routedExperts } = columns;
    if (routedExperts === undefined) return rescoring;
    const routes = { engine, specs: { routedExperts }, signal };
    return { ...rescoring, routes: await rescoreRoutes(dir, routes) };
  } finally {
    await engine.close();
  }
}
