import { isCount, quote, type Violation } from "../../trajectory/violation.ts";
import { memberAt, readPart, type Part } from "./exported-row.ts";
import type { Reader } from "./layout-reader.ts";

/** Reads a row of slime or miles. */
export const readSlime: Reader = (record) => {
  const found: Violation[] = [];
  const tokens = readPart(record, "tokens", found);
  const { response_length: length } = record;
  if (!isCount(length) || length < 1 || length >= tokens.values.length) {
    const detail = `response_length is ${quote(length)} for ${tokens.values.length} tokens`;
    found.push({ rule: "length", detail });
  }
  const start = tokens.values.length - (isCount(length) ? length : 0);
  const cut = (values: readonly unknown[], offset: number): Part => ({
    values,
    place: (index) => tokens.place(index + offset),
  });
  return {
    rows: [
      {
        prompt: cut(tokens.values.slice(0, start), 0),
        ids: cut(tokens.values.slice(start), start),
        mask: readPart(record, "loss_mask", found),
        logprobs: readPart(record, "rollout_log_probs", found),
      },
    ],
    reward: record["reward"],
    group: record["group_index"],
    rollout: memberAt(record, "metadata.rollout"),
    number: record["rollout_id"],
    lineage: memberAt(record, "metadata.lineage"),
    found,
  };
};
