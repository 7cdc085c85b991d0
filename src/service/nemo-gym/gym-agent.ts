import { randomInt, randomUUID } from "node:crypto";
import { findRefusal } from "../../export/columns/choose-columns.ts";
import { nemoRlColumns } from "../../export/columns/nemo-rl-columns.ts";
import { RowColumns } from "../../export/columns/row-columns.ts";
import { nemoRlExporter } from "../../export/trainers/nemo-rl.ts";
import type { ExportNote, ReadyAttempt } from "../../export/exporter.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import { UsageError } from "../../errors.ts";
import type { BatchRequest } from "../batch-request.ts";
import type { GroupColumns, PlayedAttempt, Taker } from "../batch-taker.ts";
import { readyAttempt } from "../ready-attempt.ts";
import type { RolloutService } from "../rollout-service.ts";
import { ServiceError } from "../service-error.ts";
import { readRunRequest, type RunRequest } from "./run-request.ts";

/** The `Taker` name of NeMo Gym's batches in the service's journal. */
export const gymTaker = "nemo-gym";

/** A call that waits for its rollout. */
interface WaitingCall {
  readonly asked: RunRequest;
  /** Returns the time in milliseconds. */
  readonly now: () => number;
  readonly answer: Resolvers<object>;
}

/**
 * Implements NeMo Gym's agent protocol. Each call plays one rollout and is answered when it ends.
 * Calls have no ids, and the calls of a group are equal, so a repeated call plays another rollout.
 * A call is cancelled if its caller disconnects.
 */
export class GymAgent {
  readonly #waiting = new Map<string, WaitingCall>();

  /** Answers the call that waits for a group. */
  get taker(): Taker {
    return {
      // No caller waits after a restart of the service.
      waitsOn: false,
      take: async ({ attempts }, { key, columns }) => {
        const call = this.#waiting.get(key);
        if (call === undefined) return;
        // The bytes of the columns can be read until this resolves.
        await answerOf(attempts[0]!, call, columns).then(call.answer.resolve, call.answer.reject);
      },
      onCancelled: (key, reason) => {
        const message =
          reason === undefined ? "The rollout was cancelled" : `The rollout failed: ${reason}`;
        this.#waiting.get(key)?.answer.reject(new ServiceError("rollout-failed", message));
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
    const refusal = findRefusal(
      "NeMo-RL",
      nemoRlExporter.columns.rules,
      service.health.columns ?? {},
    );
    if (refusal !== undefined) {
      throw new ServiceError("bad-request", `Cannot hand this run to NeMo-RL: ${refusal}`);
    }
    const asked = readRunRequest(body);
    return await this.#play(service, { asked, now, answer: withResolvers() }, signal);
  }

  async #play(service: RolloutService, call: WaitingCall, signal: AbortSignal): Promise<object> {
    const { asked, answer } = call;
    const request = toBatch(asked);
    // The call may be cancelled before it awaits this promise.
    answer.promise.catch(() => {});
    this.#waiting.set(request.key, call);
    const stop = (): void =>
      answer.reject(new ServiceError("stopping", "The service stops: call again when it is back"));
    try {
      const { status } = await service.submit(request, gymTaker);
      const leave = (): void => void service.cancel(status.batch).catch(() => {});
      if (signal.aborted) leave();
      if (service.stopping.aborted) stop();
      signal.addEventListener("abort", leave, { once: true });
      service.stopping.addEventListener("abort", stop, { once: true });
      try {
        return await answer.promise;
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
 *
 * @throws ServiceError `rollout-failed` if the result cannot be trained on.
 */
async function answerOf(
  played: PlayedAttempt,
  { asked: { given }, now }: WaitingCall,
  columns: GroupColumns | undefined,
): Promise<object> {
  const ready = readyAttempt(played, nemoRlExporter);
  if (ready.type === "unfit") throw new ServiceError("rollout-failed", ready.why);
  const { attempt, notes } = ready;
  const { response, ...rest } = await recordOf(attempt, columns);
  const { outcome, stopReason } = attempt.episode;
  const versions = attempt.rows.flatMap(({ policyVersions, lossMask }) =>
    policyVersions.filter((_, index) => lossMask[index] === 1),
  );
  return {
    ...rest,
    responses_create_params: given,
    response: {
      ...response,
      created_at: Math.floor(now() / 1000),
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

/** Returns the attempt in NeMo-RL's form, with its routes. */
async function recordOf(
  attempt: ReadyAttempt,
  columns: GroupColumns | undefined,
): Promise<{ readonly response: object }> {
  const [record] = nemoRlExporter.toRecords(attempt, {}) as [{ readonly response: object }];
  if (columns === undefined) return record;
  try {
    const rows = attempt.rows.map((row) => new RowColumns(row, columns));
    return (await nemoRlColumns.add(record, rows)) as typeof record;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new ServiceError("rollout-failed", error.message, { cause: error });
  }
}

/** Counts the rows of the attempt that NeMo-RL does not receive. */
function leftOut(notes: readonly ExportNote[]): object {
  const note = notes.find(({ action }) => action === "one-row");
  return note === undefined
    ? {}
    : { left_out_rows: note.rowCount, left_out_tokens: note.tokenCount };
}
