import { isCount, type RawRow } from "../../trajectory/violation.ts";
import { memberAt, type ExportedRecord } from "./exported-row.ts";
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
  const { reward, found } = byToken(record, read);
  return {
    ...read,
    reward,
    found,
    rollout: isCount(place) ? `${String(read.group)}#${place}` : place,
    ...("is_last_step" in record && { isLast: record["is_last_step"] }),
  };
};

/** Returns the sum of rewards that are a list, with one entry for each id of the response. */
function byToken(
  { rewards }: RawRow,
  { reward, rows, found }: ExportedRecord,
): Pick<ExportedRecord, "reward" | "found"> {
  if (!Array.isArray(rewards)) return { reward, found };
  const idCount = rows[0]!.ids.values.length;
  const sum = rewards.reduce<number>((total, own) => total + Number(own), 0);
  if (rewards.length === idCount) return { reward: sum, found };
  const detail = `rewards has ${rewards.length} entries for ${idCount} ids`;
  return { reward: sum, found: [...found, { rule: "length", detail }] };
}
