import { randomInt, randomUUID } from "node:crypto";
import { nemoRlExporter } from "../../export/trainers/nemo-rl.ts";
import type { ExportNote, ReadyAttempt } from "../../export/exporter.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { BatchRequest } from "../batch-request.ts";
import type { PlayedGroup, Taker } from "../batch-taker.ts";
import { readyAttempt } from "../ready-attempt.ts";
import type { RolloutService } from "../rollout-service.ts";
import { ServiceError } from "../service-error.ts";
import { readRunRequest, type RunRequest } from "./run-request.ts";

/** The name of this contract's batches in the service's journal. */
export const gymTaker = "nemo-gym";

/**
 * Implements NeMo Gym's agent protocol. Each call plays one rollout and is answered when it ends.
 * Calls have no ids, and the calls of a group are equal, so a repeated call plays another rollout.
 * A call is cancelled if its caller disconnects.
 */
export class GymAgent {
  readonly #waiting = new Map<string, Resolvers<PlayedGroup>>();

  /** Passes each group to the call that waits for it. */
  get taker(): Taker {
    return {
      // No caller waits after a restart of the service.
      waitsOn: false,
      take: (group, { key }) => {
        this.#waiting.get(key)?.resolve(group);
        return Promise.resolve();
      },
      onCancelled: (key, reason) => {
        const message =
          reason === undefined ? "The rollout was cancelled" : `The rollout failed: ${reason}`;
        this.#waiting.get(key)?.reject(new ServiceError("rollout-failed", message));
      },
    };
  }

  /**
   * Plays one rollout, and answers as `POST /run` does.
   * @param signal - Aborted when the caller has disconnected.
   * @throws ServiceError `bad-request`, `queue-full`, `stopping`, or `rollout-failed` if the result
   *   cannot be trained on. NeMo Gym then calls again.
   */
  async run(
    service: RolloutService,
    body: object,
    { signal, now = Date.now }: { readonly signal: AbortSignal; readonly now?: () => number },
  ): Promise<object> {
    const asked = readRunRequest(body);
    const group = await this.#play(service, toBatch(asked), signal);
    const ready = readyAttempt(group.attempts[0]!, nemoRlExporter);
    if (ready.type === "unfit") throw new ServiceError("rollout-failed", ready.why);
    return toAnswer(ready, asked, now());
  }

  async #play(
    service: RolloutService,
    request: BatchRequest,
    signal: AbortSignal,
  ): Promise<PlayedGroup> {
    const waiting = withResolvers<PlayedGroup>();
    // The call may be cancelled before it awaits this promise.
    waiting.promise.catch(() => {});
    this.#waiting.set(request.key, waiting);
    const stop = (): void =>
      waiting.reject(new ServiceError("stopping", "The service stops: call again when it is back"));
    try {
      const { status } = await service.submit(request, gymTaker);
      const leave = (): void => void service.cancel(status.batch).catch(() => {});
      if (signal.aborted) leave();
      if (service.stopping.aborted) stop();
      signal.addEventListener("abort", leave, { once: true });
      service.stopping.addEventListener("abort", stop, { once: true });
      try {
        return await waiting.promise;
      } finally {
        signal.removeEventListener("abort", leave);
        service.stopping.removeEventListener("abort", stop);
      }
    } finally {
      this.#waiting.delete(request.key);
    }
  }
}

function toBatch({ split, taskIndex, sampling }: RunRequest): BatchRequest {
  const key = randomUUID();
  return { key, split, tasks: [taskIndex], samples: 1, seed: randomInt(2 ** 31), sampling };
}

/**
 * Builds the reply to `POST /run`.
 * **Source:** NVIDIA-NeMo/Gym nemo_gym/base_resources_server.py (`BaseVerifyResponse`) and
 * nemo_gym/openai_utils.py (`NeMoGymResponse`, `TokenIDLogProbMixin`), 0.7.0.
 */
function toAnswer(
  { attempt, notes }: { readonly attempt: ReadyAttempt; readonly notes: readonly ExportNote[] },
  { given }: RunRequest,
  now: number,
): object {
  const [record] = nemoRlExporter.toRecords(attempt, {});
  const { response, ...rest } = record as { readonly response: object };
  const { outcome, stopReason } = attempt.episode;
  const versions = attempt.rows.flatMap(({ policyVersions, lossMask }) =>
    policyVersions.filter((_, index) => lossMask[index] === 1),
  );
  return {
    ...rest,
    responses_create_params: given,
    response: {
      ...response,
      created_at: Math.floor(now / 1000),
      model: typeof given["model"] === "string" ? given["model"] : "turnwright",
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools: [],
    },
    outcome,
    stop_reason: stopReason,
    policy_versions: [...new Set(versions)],
    ...leftOut(notes),
  };
}

/** Counts the rows of the attempt that NeMo-RL does not receive. */
function leftOut(notes: readonly ExportNote[]): object {
  const note = notes.find(({ action }) => action === "one-row");
  return note === undefined
    ? {}
    : { left_out_rows: note.rowCount, left_out_tokens: note.tokenCount };
}
