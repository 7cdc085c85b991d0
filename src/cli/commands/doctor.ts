import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { diagnoseRun } from "../../doctor/diagnose-run.ts";
import { defaultThresholds, type Diagnosis, type Thresholds } from "../../doctor/diagnosis.ts";
import { modelIn } from "../../doctor/run-facts.ts";
import { diagnosisPlot } from "../../doctor/print/svg-plot.ts";
import { diagnosisText } from "../../doctor/print/text.ts";
import { readVariable } from "../../secrets/read-variable.ts";
import { describeError, UsageError } from "../../errors.ts";
import { askService } from "../ask-doctor.ts";
import { findModelFolder } from "../../hub/find-model-folder.ts";
import { openStoredRun } from "../../report/read-run.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import { writeError, writeOut } from "../write-out.ts";

interface DoctorFlags extends Readonly<Partial<Record<keyof Thresholds, string>>> {
  readonly trainerLogprobs?: string;
  readonly url?: string;
  readonly tokenEnv?: string;
  readonly model?: string;
  readonly lag?: string;
  readonly partial?: true;
  readonly json?: true;
  readonly plot?: string;
}

/** The flag of each threshold. */
const thresholdFlags: readonly (readonly [keyof Thresholds, flag: string, help: string])[] = [
  ["meanDifference", "--mean-difference <nats>", "largest mean |d| at lag 0 that is healthy"],
  ["staleDifference", "--stale-difference <nats>", "largest mean |d| at other lags"],
  [
    "roundedShare",
    "--rounded-share <share>",
    "part of the mean |logprob| below which nothing is named",
  ],
  ["numericsShare", "--numerics-share <share>", "part of the mean |logprob| that numerics explain"],
  ["confidentShare", "--confident-share <share>", "largest share of confident disagreements"],
  ["outsideShare", "--outside-share <share>", "largest share of ratios outside 0.5 to 2"],
  ["routeShare", "--route-share <share>", "largest share of routes with other experts"],
  ["shiftedShare", "--shifted-share <share>", "largest share of shifted rows"],
];

/** `turnwright doctor`: names the cause of a mismatch between a trainer's logprobs and the engine's. */
export function defineDoctor(command: Command): void {
  command
    .description(
      "Reads the trainer's own logprobs of a run's rows, compares them with the engine's, and separates " +
        "staleness from numerics, shifts, dropped routes, a wrong temperature and logprobs over another set. " +
        "With --url, it asks a running service, to which the trainer posts its logprobs. " +
        "docs/doctor.md has the format of the file, and each verdict. Exit status 0 without a finding, 1 if " +
        "there is a finding, 2 for a wrong call.",
    )
    .option(
      "--trainer-logprobs <file>",
      "JSON lines with the trainer's logprobs, one line a row; needs a run's folder",
    )
    .option(
      "--url <address>",
      "a running service, in place of a folder: diagnoses the newest rows that a trainer has posted to it",
    )
    .option("--token-env <variable>", "environment variable with the service's token")
    .option(
      "--model <dir>",
      "the folder with the run's tokenizer, for kinds of tokens (default: the run's)",
    )
    .option("--lag <n>", "the lag of tokens of which a version is unknown (default: unknown)")
    .option("--partial", "rows of the run that the file lacks are no finding");
  for (const [name, flag, help] of thresholdFlags) {
    command.option(flag, `${help} (default: ${defaultThresholds[name]})`);
  }
  command
    .option("--plot <file>", "write a picture of the differences (SVG)")
    .option("--json", "print everything as JSON")
    .action(doctor);
}

async function doctor(dir: string | undefined, flags: DoctorFlags): Promise<void> {
  const diagnosis = await (flags.url === undefined
    ? diagnoseStored(dir, flags)
    : diagnoseService(dir, flags.url, flags));
  if (flags.plot !== undefined) await writePlot(flags.plot, diagnosisPlot(diagnosis));
  await writeOut(flags.json === true ? `${JSON.stringify(diagnosis)}\n` : diagnosisText(diagnosis));
  if (diagnosis.hasFinding) process.exitCode = 1;
}

async function diagnoseStored(dir: string | undefined, flags: DoctorFlags): Promise<Diagnosis> {
  const { trainerLogprobs } = flags;
  if (dir === undefined || trainerLogprobs === undefined) {
    throw new UsageError(
      "Cannot compare: expected a run's folder with --trainer-logprobs FILE, or --url ADDRESS of a service",
    );
  }
  if (flags.tokenEnv !== undefined) throw new UsageError("Cannot use --token-env without --url");
  const thresholds = readThresholds(flags);
  const assumedLag = readLag(flags.lag);
  const codec = await findCodec(dir, flags.model);
  try {
    return await diagnoseRun(dir, {
      trainerLogprobs,
      thresholds,
      isPartial: flags.partial === true,
      ...(assumedLag !== undefined && { assumedLag }),
      ...(codec !== undefined && { codec }),
    });
  } finally {
    await codec?.close?.();
  }
}

/** Asks a running service. */
async function diagnoseService(
  dir: string | undefined,
  url: string,
  flags: DoctorFlags,
): Promise<Diagnosis> {
  const { trainerLogprobs, model, partial } = flags;
  if (dir !== undefined || trainerLogprobs !== undefined || model !== undefined || partial) {
    throw new UsageError(
      "Cannot use --url with a folder, --trainer-logprobs, --model or --partial: the trainer posts the rows to the service",
    );
  }
  const assumedLag = readLag(flags.lag);
  const token = readVariable(process.env, flags.tokenEnv, "--token-env");
  return await askService(url, {
    thresholds: readThresholds(flags),
    ...(assumedLag !== undefined && { assumedLag }),
    ...(token !== undefined && { token }),
  });
}

function readThresholds(flags: DoctorFlags): Partial<Thresholds> {
  const given = thresholdFlags.flatMap(([name, flag]) => {
    const text = flags[name];
    if (text === undefined) return [];
    const value = Number(text);
    if (text.trim() !== "" && value >= 0) return [[name, value] as const];
    throw new UsageError(`Cannot use ${flag.split(" ")[0]} ${text}: expected a number, 0 or more`);
  });
  return Object.fromEntries(given);
}

function readLag(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`Cannot use --lag ${text}: expected a whole number, such as 0`);
}

/** Loads the run's tokenizer; `undefined`, with a note, if it cannot be loaded and no flag names it. */
async function findCodec(dir: string, given: string | undefined): Promise<TokenCodec | undefined> {
  if (given !== undefined) return await loadTokenCodec(await findModelFolder(given));
  const model = modelIn((await openStoredRun(dir, { onDamaged: () => {} })).manifest);
  if (model === undefined) return undefined;
  try {
    return await loadTokenCodec(model);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    writeError(`note: kinds of tokens by text are left out: ${describeError(error)}\n`);
    return undefined;
  }
}

async function writePlot(file: string, plot: string): Promise<void> {
  try {
    await writeFile(file, plot);
  } catch (error) {
    throw new UsageError(`Cannot write ${file}: ${describeError(error)}`, { cause: error });
  }
}
