import { specsIn } from "../columns/column-specs.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { samplingFactsIn } from "../run/policy/found-sampling.ts";
import { isObject } from "../values/is-object.ts";
import type { RunParsers } from "./analysis/token-kinds.ts";
import type { RunFacts } from "./verdict/evidence.ts";

/** Returns how a run sampled, as its `run.json` says. */
export function factsIn(manifest: RunManifest): RunFacts {
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
export function parsersIn({ found }: RunManifest): RunParsers {
  const card = isObject(found["template"]) ? found["template"] : {};
  const { parser, reasoningParser, opensReasoning } = card;
  return {
    ...(typeof parser === "string" && { toolCallParser: parser }),
    ...(typeof reasoningParser === "string" && reasoningParser !== "none" && { reasoningParser }),
    opensReasoning: opensReasoning === true,
  };
}

/** Returns the folder or the name of the run's model, if the run was started with one. */
export function modelIn({ found }: RunManifest): string | undefined {
  const { settings } = found;
  const model = isObject(settings) ? settings["model"] : undefined;
  return typeof model === "string" ? model : undefined;
}
