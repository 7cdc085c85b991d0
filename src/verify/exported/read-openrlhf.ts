import { isCount, quote, type Violation } from "../../trajectory/violation.ts";
import { derivedPart, readPart } from "./exported-row.ts";
import type { Reader } from "./layout-reader.ts";

/** Reads a row whose mask is a list of ranges. */
export const readOpenrlhf: Reader = (record) => {
  const found: Violation[] = [];
  const ids = readPart(record, "observation_tokens", found);
  const ranges = readPart(record, "action_ranges", found);
  const mask = new Array<number>(ids.values.length).fill(0);
  let before = 0;
  for (const [index, range] of ranges.values.entries()) {
    const [start, end] = Array.isArray(range) ? (range as readonly unknown[]) : [];
    if (isCount(start) && isCount(end) && before <= start && start < end && end <= mask.length) {
      mask.fill(1, start, end);
      before = end;
      continue;
    }
    const detail = `${ranges.place(index)} is ${quote(range)}, expected a range of ${mask.length} ids from ${before} on`;
    found.push({ rule: "mask", detail });
  }
  return {
    rows: [
      {
        ids,
        mask: derivedPart(mask, "action_ranges"),
        logprobs: readPart(record, "rollout_log_probs", found),
      },
    ],
    reward: record["reward"],
    group: record["prompt"],
    found,
  };
};
