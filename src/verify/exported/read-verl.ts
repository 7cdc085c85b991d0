import { isObject } from "../../values/is-object.ts";
import { quote, type Violation } from "../../trajectory/violation.ts";
import { memberAt, readPart, type ExportedRecord, type Part } from "./exported-row.ts";
import { readerOf, type Reader } from "./layout-reader.ts";

const readVerlOutput = readerOf({
  prompt: "prompt_ids",
  ids: "response_ids",
  mask: "response_mask",
  logprobs: "response_logprobs",
  reward: "reward_score",
  group: "extra_fields.uid",
  rollout: "extra_fields.rollout_id",
});

/** Reads the output of an attempt, or its list of outputs. */
export const readVerl: Reader = (record) => {
  if (!("outputs" in record)) return readVerlOutput(record);
  const found: Violation[] = [];
  const { values, place } = readPart(record, "outputs", found);
  const outputs = values.map((output, index) =>
    withPlaces(readVerlOutput(isObject(output) ? output : {}), `${place(index)}.`),
  );
  if (outputs.length === 0) return { ...readVerlOutput({}), found };
  for (const [index, { reward, group, rollout }] of outputs.entries()) {
    for (const [name, value, first] of [
      ["reward_score", reward, outputs[0]!.reward],
      ["extra_fields.uid", group, outputs[0]!.group],
      ["extra_fields.rollout_id", rollout, outputs[0]!.rollout],
    ] as const) {
      if (value === first) continue;
      const detail = `${place(index)}.${name} is ${quote(value)}, and ${quote(first)} in the first output`;
      found.push({ rule: "attempt", detail });
    }
    const info = memberAt(values[index], "extra_fields.reward_extra_info");
    if (isObject(info)) continue;
    found.push({ rule: "shape", detail: `${place(index)}.extra_fields has no reward_extra_info` });
  }
  return {
    ...outputs[0]!,
    rows: outputs.flatMap(({ rows }) => rows),
    found: [...found, ...outputs.flatMap((output) => output.found)],
  };
};

/** Returns a record whose places begin with a prefix, such as `outputs[1].`. */
function withPlaces(record: ExportedRecord, prefix: string): ExportedRecord {
  const placed = ({ values, place }: Part): Part => ({
    values,
    place: (index) => `${prefix}${place(index)}`,
  });
  return {
    ...record,
    rows: record.rows.map((row) => ({
      ...row,
      ids: placed(row.ids),
      mask: placed(row.mask),
      logprobs: placed(row.logprobs),
      ...(row.prompt && { prompt: placed(row.prompt) }),
    })),
    found: record.found.map(({ rule, detail }) => ({ rule, detail: `${prefix}${detail}` })),
  };
}
