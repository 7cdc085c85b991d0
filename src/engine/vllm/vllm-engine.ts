import type { EngineDescription } from "../engine.ts";
import type { DescribeCall, ScoringHttpEngine } from "../http/http-engine.ts";
import { createHttpEngine } from "../http/http-engine.ts";
import type { Worker } from "../http/worker-set.ts";
import { describeVllm } from "./describe-vllm.ts";
import { loadOfVllm } from "./vllm-load.ts";
import type { VllmEngineOptions } from "./vllm-options.ts";
import { toVllmSettings } from "./vllm-options.ts";
import { createVllmProtocol } from "./vllm-protocol.ts";

/** One or several vLLM servers. */
export interface VllmEngine extends ScoringHttpEngine {
  readonly kind: "vllm";
}

/**
 * Connects to vLLM. Makes no request itself.
 *
 * Each turn is one request: `/inference/v1/generate` if the server has it, otherwise `/v1/completions` with ids. The
 * reply is streamed if the caller passes `onTokens`. The model's own end ids end a turn as well as the request's stop
 * ids.
 *
 * Logprobs follow the server's `--logprobs-mode`. The default is the raw logits: with penalties or a temperature other
 * than 1, these are not the probabilities of the sampling distribution. `describe()` determines the mode. For training
 * at other temperatures, run the server with `--logprobs-mode processed_logprobs`.
 *
 * Scores are of the raw logits in every mode, because the server transforms no prompt logprobs. At temperatures other
 * than 1 and 0, the engine can score only if its reported logprobs are `raw` too.
 *
 * @throws UsageError for options that cannot be used.
 */
export function createVllmEngine(options: VllmEngineOptions): VllmEngine {
  const settings = toVllmSettings(options);
  return createHttpEngine("vllm", settings, (closing) => {
    const protocol = createVllmProtocol(settings, closing);
    const { versionsOf, warningOf } = protocol;
    /** The last description of the server. */
    let known: EngineDescription | undefined;
    const describe = async (
      workers: readonly Worker[],
      call: DescribeCall,
    ): Promise<EngineDescription> => {
      known = await describeVllm(workers, { settings, call, closing, versionsOf, warningOf });
      return known;
    };
    return {
      protocol,
      load: (worker, { signal }) =>
        loadOfVllm(worker, { settings, signal, closing, expected: "a vLLM server" }),
      describe,
      scoring: {
        scoreIds: (piece, exchange) => protocol.scoreIds(piece, exchange),
        async findConvention(workers, call) {
          const { isConventionAssumed, logprobConvention } =
            known ?? (await describe(workers, call));
          return isConventionAssumed === true ? undefined : logprobConvention;
        },
      },
    };
  });
}
