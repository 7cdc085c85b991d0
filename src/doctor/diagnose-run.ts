import { specsIn } from "../columns/column-specs.ts";
import { openStoredRun } from "../report/read-run.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { requireRunRows } from "../run/require-rows.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { createKindReader } from "./analysis/token-kinds.ts";
import { diagnose, type DiagnoseOptions } from "./diagnose.ts";
import type { Diagnosis } from "./diagnosis.ts";
import { readTrainerFile, type TrainerRows } from "./input/trainer-rows.ts";
import { factsIn, parsersIn } from "./run-facts.ts";

/** Options of `diagnoseRun()`. */
export interface DiagnoseRunOptions extends Omit<DiagnoseOptions, "facts" | "kinds" | "routes"> {
  /** The file with the trainer's logprobs (docs/doctor.md), or its rows. */
  readonly trainerLogprobs: string | TrainerRows;
  /**
   * The run's tokenizer, by which the kinds of tokens follow from their text. If absent, the kinds follow from the
   * position in the turn alone.
   */
  readonly codec?: Pick<TokenCodec, "decode" | "tokenOf">;
}

/**
 * Compares a trainer's logprobs with those of a run's finished rows.
 *
 * @param dir - The run's folder. The run may still be written.
 * @throws UsageError if the folder or the file cannot be read, or a file of the run's columns is missing.
 */
export async function diagnoseRun(
  dir: string,
  { trainerLogprobs, codec, ...options }: DiagnoseRunOptions,
): Promise<Diagnosis> {
  const run = await openStoredRun(dir, { onDamaged: () => {} });
  const trainer =
    typeof trainerLogprobs === "string" ? await readTrainerFile(trainerLogprobs) : trainerLogprobs;
  const { manifest } = run;
  requireRunRows(manifest.found, `compare logprobs of ${dir}`);
  const { routedExperts } = specsIn(manifest.found);
  await using source = openColumnFolder(dir);
  return await diagnose(run.samples(), trainer, {
    ...options,
    facts: factsIn(manifest),
    ...(codec !== undefined && { kinds: createKindReader(codec, parsersIn(manifest)) }),
    ...(routedExperts !== undefined && { routes: { shape: routedExperts, source } }),
  });
}
