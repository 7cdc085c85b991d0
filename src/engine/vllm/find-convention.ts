import { RolloutError } from "../../errors.ts";
import type { GenerateRequest, Generation, LogprobConvention } from "../engine.ts";
import { toProbe } from "../to-probe.ts";

/** The convention of a server's logprobs, if it could be determined. */
interface FoundConvention {
  readonly convention: LogprobConvention | undefined;
  /** The reason why `convention` is undefined. */
  readonly problem: string;
}

/** The logprob above which a token is nearly certain, so that all conventions give the same number. */
const CERTAIN = -0.01;

/**
 * The largest difference between two requests for the same token, which the server may process in different batches.
 */
const TOLERANCE = 0.005;

/**
 * Determines the convention from the likeliest token after a prompt. The token is sampled once greedily, and once at
 * temperature 2 with a single candidate.
 *
 * If logprobs are taken before all transforms, both requests report the same logprob. If they are taken after all
 * transforms, the second one is 0. If only the temperature is applied, the second one is another number.
 *
 * A server that returns kept tokens refuses the first request and accepts the second one. Such a server takes logprobs
 * after all transforms, because it starts only with `--logprobs-mode processed_logprobs`.
 *
 * @throws RolloutError `engine/unreachable` or `engine/unauthorized`.
 */
export async function findConvention({
  prompts,
  generate,
}: {
  prompts: readonly (readonly number[])[];
  generate: (request: GenerateRequest) => Promise<Generation>;
}): Promise<FoundConvention> {
  let problem = "every probe was certain of its token";
  for (const [index, promptIds] of prompts.entries()) {
    const probe = toProbe(promptIds);
    const requestId = `${probe.requestId}-${index}`;
    try {
      const greedy = await generate({
        ...probe,
        requestId: `${requestId}-greedy`,
        sampling: { temperature: 0 },
      }).catch((error: unknown) => {
        if (error instanceof RolloutError && error.code === "engine/bad-request") return error;
        throw error;
      });
      const restricted = await generate({
        ...probe,
        requestId: `${requestId}-only`,
        sampling: { temperature: 2, topK: 1 },
      });
      if (greedy instanceof RolloutError) {
        if (restricted.logprobs[0] === 0) return { convention: "processed", problem: "" };
        throw greedy;
      }
      const convention = compare(greedy, restricted);
      if (convention !== undefined) return { convention, problem: "" };
    } catch (error) {
      if (!(error instanceof RolloutError) || isFinal(error)) throw error;
      problem = error.message;
      // The model may lack an id of this prompt and have those of the next one.
      if (error.code !== "engine/bad-request") break;
    }
  }
  return { convention: undefined, problem };
}

function isFinal({ code }: RolloutError): boolean {
  return code === "engine/unreachable" || code === "engine/unauthorized";
}

function compare(greedy: Generation, restricted: Generation): LogprobConvention | undefined {
  const [greedyLogprob = 0] = greedy.logprobs;
  const [restrictedLogprob = 0] = restricted.logprobs;
  const isSameToken = greedy.outputIds[0] === restricted.outputIds[0];
  if (!isSameToken || greedyLogprob > CERTAIN) return undefined;
  if (Math.abs(greedyLogprob - restrictedLogprob) <= TOLERANCE) return "raw";
  return restrictedLogprob === 0 ? "processed" : "tempered";
}
