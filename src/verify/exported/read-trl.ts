import { readerOf, type Reader } from "./layout-reader.ts";

const readRollout = readerOf({
  prompt: "prompt_ids",
  ids: "completion_ids",
  mask: "env_mask",
  logprobs: "logprobs",
  reward: "env_reward",
  group: "group",
  rollout: "rollout",
});

const readDistilled = readerOf({
  ids: "sample.input_ids",
  mask: "sample.completion_mask",
  logprobs: "logprobs",
  reward: "reward",
  group: "group",
  rollout: "rollout",
});

/** Reads a result of a `rollout_func`, or a sample of the distillation, which has a record for each row. */
export const readTrl: Reader = (record) =>
  "sample" in record ? { ...readDistilled(record), isPerRow: true } : readRollout(record);
