import { isCount } from "../../trajectory/violation.ts";
import { memberAt } from "./exported-row.ts";
import { readerOf, type Reader } from "./layout-reader.ts";

const readSkyrlRow = readerOf({
  prompt: "prompt_token_ids",
  ids: "response_ids",
  mask: "loss_masks",
  logprobs: "rollout_logprobs",
  reward: "rewards",
  group: "trajectory_ids.instance_id",
});

/** Reads the entry of a row. An attempt is named by its prompt and its place in the group. */
export const readSkyrl: Reader = (record) => {
  const place = memberAt(record, "trajectory_ids.repetition_id");
  const read = readSkyrlRow(record);
  return {
    ...read,
    rollout: isCount(place) ? `${String(read.group)}#${place}` : place,
    ...("is_last_step" in record && { isLast: record["is_last_step"] }),
  };
};
