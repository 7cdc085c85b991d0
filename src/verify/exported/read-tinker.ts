import { quote } from "../../trajectory/violation.ts";
import { memberAt } from "./exported-row.ts";
import { readerOf, type Reader } from "./layout-reader.ts";

/** Reads a datum. Its inputs lack the last token, its targets the first. */
export const readTinker: Reader = (record) => {
  const inner = readerOf({
    ids: "loss_fn_inputs.target_tokens.data",
    mask: "loss_fn_inputs.mask.data",
    logprobs: "loss_fn_inputs.logprobs.data",
    advantages: "loss_fn_inputs.advantages.data",
    reward: "reward",
    group: "group",
    rollout: "rollout",
    lineage: "lineage",
  })(record);
  const found = [...inner.found];
  const chunks = memberAt(record, "model_input.chunks");
  const inputs: unknown = Array.isArray(chunks) ? memberAt(chunks[0], "tokens") : undefined;
  const { ids } = inner.rows[0]!;
  const place = "model_input.chunks[0].tokens";
  if (!Array.isArray(inputs) || inputs.length !== ids.values.length) {
    found.push({ rule: "length", detail: `${place} is not as long as its targets` });
    return { ...inner, found };
  }
  const wrong = inputs.findIndex((id, index) => index > 0 && id !== ids.values[index - 1]);
  if (wrong >= 0) {
    const detail = `${place}[${wrong}] is ${quote(inputs[wrong])}, and ${ids.place(wrong - 1)} is ${quote(ids.values[wrong - 1])}`;
    found.push({ rule: "alignment", detail });
  }
  return { ...inner, found };
};
