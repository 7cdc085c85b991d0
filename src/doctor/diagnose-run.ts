import { specsIn } from "../columns/column-specs.ts";
import { openStoredRun } from "../report/read-run.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { requireRunRows } from "../run/require-rows.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { samplingFactsIn } from "../run/policy/found-sampling.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { isObject } from "../values/is-object.ts";
import { createKindReader, type RunParsers } from "./analysis/token-kinds.ts";
import { diagnose, type DiagnoseOptions } from "./diagnose.ts";
import type { Diagnosis } from "./diagnosis.ts";
import { readTrainerFile, type TrainerRows } from "./input/trainer-rows.ts";
import type { RunFacts } from "./verdict/evidence.ts";

/** Options of `diagnoseRun()`. */
export interface DiagnoseRunOptions extends Omit<DiagnoseOptions, "facts" | "kinds" | "routes"> {
  /** The file with the trainer's logprobs (docs/doctor.md), or its rows. */
  readonly trainerLogprobs: string | TrainerRows;
  /** The run's tokenizer, for the kinds of tokens by their text. Absent: kinds by place only. */
  readonly codec?: Pick<TokenCodec, "decode" | "tokenOf">;
}

/**
 * Compares a trainer's logprobs with those of a run's finished rows.
 *
 * @param dir - The run's folder. It may be written meanwhile.
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

/** Returns how a run sampled, as its `run.json` says. */
function factsIn(manifest: RunManifest): RunFacts {
  const { sampling = {}, logprobConvention } = samplingFactsIn(manifest.found);
  const { temperature, topP = 1, topK = -1, minP = 0 } = sampling;
  const convention = logprobConvention ?? conventionIn(manifest.identity);
  return {
    ...(temperature !== undefined && { temperature }),
    ...(convention !== undefined && { logprobConvention: convention }),
    hasTruncation: topP < 1 || topK > 0 || minP > 0,
    hasKeptTokens: specsIn(manifest.found).keptTokens !== undefined,
  };
}

function conventionIn(identity: RunManifest["identity"]): RunFacts["logprobConvention"] {
  const convention = identity?.["logprobConvention"];
  return convention === "tempered" || convention === "raw" || convention === "processed"
    ? convention
    : undefined;
}

/** Returns the parsers that the run's capability card names. */
function parsersIn({ found }: RunManifest): RunParsers {
  const card = isObject(found["template"]) ? found["template"] : {};
  const { parser, reasoningParser, opensReasoning } = card;
  return {
    ...(typeof parser === "string" && { toolCallParser: parser }),
    ...(typeof reasoningParser === "string" && reasoningParser !== "none" && { reasoningParser }),
    opensReasoning: opensReasoning === true,
  };
}
