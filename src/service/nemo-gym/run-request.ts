import { isObject } from "../../values/is-object.ts";
import type { BatchRequest } from "../batch-request.ts";
import { readSampling } from "../batch-request.ts";
import { ServiceError } from "../service-error.ts";

/** The body of `POST /run`. */
export interface RunRequest {
  readonly split: string;
  readonly taskIndex: number;
  readonly sampling: BatchRequest["sampling"];
  /** `responses_create_params`, unchanged. */
  readonly given: Readonly<Record<string, unknown>>;
}

/**
 * Reads a row of NeMo Gym's data set. `task_index` and `split` name the task. Of
 * `responses_create_params` only `temperature` and `top_p` are used, because the environment has
 * the prompt. Other members are ignored: rows have many for other programs.
 *
 * @throws ServiceError `bad-request` that names the member.
 */
export function readRunRequest(body: object): RunRequest {
  const {
    responses_create_params: given,
    task_index: taskIndex,
    split,
  } = body as {
    readonly responses_create_params?: unknown;
    readonly task_index?: unknown;
    readonly split?: unknown;
  };
  if (!isObject(given)) throw wrong("responses_create_params", "an object");
  if (!Number.isSafeInteger(taskIndex) || (taskIndex as number) < 0) {
    throw wrong("task_index", "the index of a task");
  }
  if (split !== undefined && typeof split !== "string") throw wrong("split", "a text");
  const { temperature, top_p: topP } = given;
  return {
    split: split ?? "train",
    taskIndex: taskIndex as number,
    sampling: readSampling(
      { ...(temperature != null && { temperature }), ...(topP != null && { topP }) },
      "responses_create_params.",
    ),
    given,
  };
}

function wrong(name: string, expected: string): ServiceError {
  return new ServiceError("bad-request", `"${name}" is missing or wrong: expected ${expected}`);
}
