import { RolloutError } from "../../errors.ts";
import type { GenerateRequest, Generation, LogprobConvention } from "../engine.ts";
import { toProbe } from "../http/http-engine.ts";

/** What was found out about a server's logprobs. */
interface FoundConvention {
  readonly convention: LogprobConvention | undefined;
  /** Why there is none. */
  readonly problem: string;
}

/** Closer to 0 than this, the likeliest token is certain, and every convention says the same. */
const CERTAIN = -0.01;

/** Two requests for the same token may differ by this much, by how the server batches them. */
const TOLERANCE = 0.005;

/**
 * Tells conventions apart by the likeliest token behind a prompt: sampled greedily, and sampled at
 * temperature 2 with one candidate. Before the sampling transforms its logprob is the same both times;
 * after them it is 0 the second time; after the temperature alone it is something else.
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
      });
      const only = await generate({
        ...probe,
        requestId: `${requestId}-only`,
        sampling: { temperature: 2, topK: 1 },
      });
      const convention = compare(greedy, only);
      if (convention !== undefined) return { convention, problem: "" };
    } catch (error) {
      if (!(error instanceof RolloutError) || isFinal(error)) throw error;
      problem = error.message;
      // Another prompt may be of ids that the model has.
      if (error.code !== "engine/bad-request") break;
    }
  }
  return { convention: undefined, problem };
}

function isFinal({ code }: RolloutError): boolean {
  return code === "engine/unreachable" || code === "engine/unauthorized";
}

function compare(greedy: Generation, only: Generation): LogprobConvention | undefined {
  const [greedyLogprob = 0] = greedy.logprobs;
  const [onlyLogprob = 0] = only.logprobs;
  const isSameToken = greedy.outputIds[0] === only.outputIds[0];
  if (!isSameToken || greedyLogprob > CERTAIN) return undefined;
  if (Math.abs(greedyLogprob - onlyLogprob) <= TOLERANCE) return "raw";
  return onlyLogprob === 0 ? "processed" : "tempered";
}
