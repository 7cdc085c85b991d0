import { isObject } from "../values/is-object.ts";
import type { SamplingParameters } from "../engine/engine.ts";
import {
  checkMembers,
  numberWithin,
  optional,
  textOf,
  wholeNumber,
  type MemberRule,
} from "./read-members.ts";
import { engineAddress } from "./engine-address.ts";
import { ServiceError } from "./service-error.ts";

/** A request for a batch. JSON-able. docs/service.md explains each member. */
export interface BatchRequest {
  readonly key: string;
  readonly split: string;
  readonly tasks: readonly number[];
  readonly samples: number;
  readonly seed: number;
  readonly sampling: Pick<SamplingParameters, "temperature" | "topP" | "topK" | "minP">;
  readonly deadlineS?: number;
  readonly minPolicyVersion?: number;
  /** The address of the engine that samples, as `engineAddress()` writes it. */
  readonly engine?: string;
}

/** Maximum number of attempts in a batch. */
export const maxBatchAttempts = 65_536;

const rules = {
  key: textOf(1, 200),
  split: textOf(1, 200),
  tasks: {
    expected: "a list of 1 or more task indexes",
    isRight: (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((index) => Number.isSafeInteger(index) && index >= 0),
  },
  samples: wholeNumber(1),
  seed: optional(wholeNumber(0)),
  sampling: { expected: "an object", isRight: isObject, isOptional: true },
  deadlineS: optional({
    expected: "a number of seconds above 0",
    isRight: (value) => typeof value === "number" && value > 0 && Number.isFinite(value),
  }),
  minPolicyVersion: optional(wholeNumber(0)),
  engine: optional({
    expected: "an address such as http://host:port",
    isRight: (value) =>
      typeof value === "string" && value.length <= 2000 && engineAddress(value) !== undefined,
  }),
} satisfies Record<keyof BatchRequest, MemberRule>;

const samplingRules = {
  temperature: optional(numberWithin(0, 100)),
  topP: optional(numberWithin(0, 1)),
  topK: optional({
    expected: "an integer of at least 1, or -1 for all",
    isRight: (value) => Number.isSafeInteger(value) && (value === -1 || (value as number) >= 1),
  }),
  minP: optional(numberWithin(0, 1)),
} satisfies Record<keyof BatchRequest["sampling"], MemberRule>;

/**
 * Reads a request for a batch and fills in defaults. Does not check that the tasks exist.
 *
 * @throws ServiceError `bad-request` that names the member, or `too-large`.
 */
export function readBatchRequest(body: object): BatchRequest {
  checkMembers(body, rules);
  const asked = body as Omit<BatchRequest, "seed" | "sampling"> & Partial<BatchRequest>;
  const { key, split, tasks, samples, seed = 0 } = asked;
  const { sampling = {}, deadlineS, minPolicyVersion, engine } = asked;
  const attempts = tasks.length * samples;
  if (attempts > maxBatchAttempts) {
    throw new ServiceError(
      "too-large",
      `The batch has ${attempts} attempts, at most ${maxBatchAttempts} are taken: submit several`,
    );
  }
  if (!Number.isSafeInteger(seed + attempts)) {
    throw new ServiceError("bad-request", `"seed" is wrong: the attempts' seeds pass 2^53`);
  }
  return {
    key,
    split,
    tasks,
    samples,
    seed,
    sampling: readSampling(sampling, "sampling."),
    ...(deadlineS !== undefined && { deadlineS }),
    ...(minPolicyVersion !== undefined && { minPolicyVersion }),
    ...(engine !== undefined && { engine: engineAddress(engine)! }),
  };
}

/**
 * Reads the sampling parameters.
 *
 * @param place - The prefix of the members' names in messages, such as `sampling.`.
 * @throws ServiceError `bad-request` that names the member.
 */
export function readSampling(sampling: object, place: string): BatchRequest["sampling"] {
  checkMembers(sampling, samplingRules, place);
  const { temperature, topP, topK, minP } = sampling as BatchRequest["sampling"];
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(minP !== undefined && { minP }),
  };
}
