import { namesOf, type ColumnName, type ColumnSpecs } from "../columns/column-specs.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { checkGeneration } from "./check-sampled.ts";
import type { Engine, EngineDescription, GenerateRequest } from "./engine.ts";
import { toProbe } from "./to-probe.ts";
import type { TokenIds } from "./token-id.ts";

/** The way to start a server so that it returns a column. */
const remedies: Readonly<Record<string, Readonly<Partial<Record<ColumnName, string>>>>> = {
  sglang: {
    routedExperts: "SGLang started with --enable-return-routed-experts",
    keptTokens:
      "SGLang 0.5.23 or newer, started with --sampling-mask-max-tokens of at least the run's topK",
    topLogprobs: "an SGLang server that returns output_top_logprobs",
    indexerTopK: "SGLang started with --enable-return-indexer-topk, on CUDA",
  },
  vllm: {
    routedExperts:
      "`vllm serve` with --enable-scale-out --enable-return-routed-experts and VLLM_USE_V2_MODEL_RUNNER=1",
    keptTokens:
      "`vllm serve` with --enable-scale-out --return-sampling-mask --logprobs-mode processed_logprobs and " +
      "VLLM_USE_V2_MODEL_RUNNER=1",
    topLogprobs: "`vllm serve` with --enable-scale-out",
    indexerTopK: "SGLang: vLLM does not return it",
  },
};

/**
 * Checks before a run that an engine returns the run's columns: reads its description, and requests one token with each
 * column, because servers ignore requests for columns that they were not started with.
 *
 * @param options.promptIds - Ids of the model. Default `[0]`.
 * @throws UsageError naming a column that does not arrive, the server, and the way to start it.
 * @throws RolloutError as `generate()` does, and the signal's reason.
 */
export async function requireColumns(
  engine: Pick<Engine, "describe" | "generate">,
  specs: ColumnSpecs,
  { promptIds = [0], signal }: { promptIds?: TokenIds; signal?: AbortSignal } = {},
): Promise<void> {
  const options = signal === undefined ? {} : { signal };
  const description = await engine.describe(options);
  for (const name of namesOf(specs)) {
    if (description.columns !== undefined && !description.columns.includes(name)) {
      throw missingColumn(name, { specs, description }, "it was not started with the column");
    }
    const request = toColumnProbe(promptIds, specs, name);
    try {
      checkGeneration(await engine.generate(request, options), request);
    } catch (error) {
      if (!(error instanceof RolloutError) || !isRefusal(error)) throw error;
      throw missingColumn(name, { specs, description }, error.message);
    }
  }
}

/** Returns a request for one token with one column. vLLM refuses requests without `topK` if it returns kept tokens. */
function toColumnProbe(promptIds: TokenIds, specs: ColumnSpecs, name: ColumnName): GenerateRequest {
  return {
    ...toProbe(promptIds),
    requestId: `turnwright-probe-${name}`,
    sampling: { topK: Math.min(20, specs.keptTokens?.maxCount ?? 20) },
    columns: { specs: { [name]: specs[name] }, knownRows: 0 },
  };
}

function isRefusal({ code }: RolloutError): boolean {
  return code === "engine/bad-reply" || code === "engine/bad-request";
}

function missingColumn(
  name: ColumnName,
  {
    specs,
    description: { kind, url },
  }: { readonly specs: ColumnSpecs; readonly description: EngineDescription },
  problem: string,
): UsageError {
  const place = url === undefined ? kind : `${kind} at ${url}`;
  const remedy = remedies[kind]?.[name] ?? "an engine that returns it, such as SGLang or vLLM";
  return new UsageError(
    `Cannot get the column ${name} from ${place}: ${problem}; expected ${remedy}${shapeOf(name, specs)}`,
  );
}

/** Describes the shape of routes that the run requests, because it may differ from the server's model. */
function shapeOf(name: ColumnName, { routedExperts }: ColumnSpecs): string {
  if (name !== "routedExperts" || routedExperts === undefined) return "";
  const { layerCount, perToken, expertCount } = routedExperts;
  return `, and a model with ${layerCount} layers and ${perToken} of ${expertCount} experts a token`;
}
