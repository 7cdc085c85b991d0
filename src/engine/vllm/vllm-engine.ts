import type { EngineDescription } from "../engine.ts";
import type { DescribeCall, ScoringHttpEngine } from "../http/http-engine.ts";
import { createHttpEngine } from "../http/http-engine.ts";
import type { Worker } from "../http/worker-set.ts";
import { describeVllm } from "./describe-vllm.ts";
import { loadOfVllm } from "./vllm-load.ts";
import type { VllmEngineOptions } from "./vllm-options.ts";
import { toVllmSettings } from "./vllm-options.ts";
import { createVllmProtocol } from "./vllm-protocol.ts";

/** A vLLM server, or several. */
export interface VllmEngine extends ScoringHttpEngine {
  readonly kind: "vllm";
}

/**
 * Connects to vLLM. Makes no request by itself.
 *
 * Each turn is one request, not streamed: `/inference/v1/generate` where the server has it, else
 * `/v1/completions` with ids. Besides the request's stop ids, the model's own end a turn.
 *
 * Logprobs are by the server's `--logprobs-mode`, by default those of the raw logits: at another
 * temperature than 1, or with penalties, they are not those of what was sampled from. `describe()`
 * finds out which it is. For training at other temperatures run the server with
 * `--logprobs-mode processed_logprobs`.
 *
 * Scores are of the raw logits in every mode, because no transform is applied to a prompt's logprobs:
 * with temperatures other than 1 and 0 it can score only where the reported logprobs are `raw` too.
 *
 * @throws UsageError for options that cannot be used.
 */
export function createVllmEngine(options: VllmEngineOptions): VllmEngine {
  const settings = toVllmSettings(options);
  return createHttpEngine("vllm", settings, (closing) => {
    const protocol = createVllmProtocol(settings, closing);
    const { versionsOf, warningOf } = protocol;
    /** What the server last said of itself. */
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
