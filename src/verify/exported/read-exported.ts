import type { ExportTarget } from "../../export/exporters.ts";
import { isCount, quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import {
  derivedPart,
  memberAt,
  readPart,
  toBit,
  type ExportedRecord,
  type ExportedRow,
  type Part,
} from "./exported-row.ts";
import { readNemoRl } from "./read-nemo-rl.ts";
import { readVerifiers } from "./read-verifiers.ts";

type Reader = (record: RawRow) => ExportedRecord;

/** The paths of a row's parts, for a form with one row per record. */
interface Layout {
  readonly prompt?: string;
  readonly ids: string;
  readonly mask: string;
  readonly logprobs: string;
  readonly versions?: string;
  readonly advantages?: string;
  readonly reward: string;
  readonly group: string;
  readonly rollout?: string;
}

function readerOf(layout: Layout): Reader {
  return (record) => {
    const found: Violation[] = [];
    const part = (name: "prompt" | "versions" | "advantages") => {
      const path = layout[name];
      return path === undefined ? {} : { [name]: readPart(record, path, found) };
    };
    const row: ExportedRow = {
      ids: readPart(record, layout.ids, found),
      mask: readPart(record, layout.mask, found),
      logprobs: readPart(record, layout.logprobs, found),
      ...part("prompt"),
      ...part("versions"),
      ...part("advantages"),
    };
    return {
      rows: [row],
      reward: memberAt(record, layout.reward),
      group: memberAt(record, layout.group),
      ...(layout.rollout !== undefined && { rollout: memberAt(record, layout.rollout) }),
      found,
    };
  };
}

const readSlime: Reader = (record) => {
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
    found,
  };
};

const readOpenrlhf: Reader = (record) => {
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

const readTinker: Reader = (record) => {
  const inner = readerOf({
    ids: "loss_fn_inputs.target_tokens.data",
    mask: "loss_fn_inputs.mask.data",
    logprobs: "loss_fn_inputs.logprobs.data",
    advantages: "loss_fn_inputs.advantages.data",
    reward: "reward",
    group: "group",
    rollout: "rollout",
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

const readPrimeRl: Reader = (record) => {
  const read = readerOf({
    ids: "sample.token_ids",
    mask: "sample.mask",
    logprobs: "sample.logprobs",
    advantages: "sample.advantages",
    reward: "reward",
    group: "group",
    rollout: "id",
  })(record);
  const toBits = (row: ExportedRow): ExportedRow => ({
    ...row,
    mask: { ...row.mask, values: row.mask.values.map(toBit) },
  });
  return { ...read, rows: read.rows.map(toBits) };
};

/** The functions that read records, by trainer. */
export const exportedReaders: Readonly<Record<ExportTarget, Reader>> = {
  slime: readSlime,
  trl: readerOf({
    prompt: "prompt_ids",
    ids: "completion_ids",
    mask: "env_mask",
    logprobs: "logprobs",
    reward: "env_reward",
    group: "group",
    rollout: "rollout",
  }),
  verl: readerOf({
    prompt: "prompt_ids",
    ids: "response_ids",
    mask: "response_mask",
    logprobs: "response_logprobs",
    reward: "reward_score",
    group: "extra_fields.uid",
    rollout: "extra_fields.rollout_id",
  }),
  skyrl: readerOf({
    prompt: "prompt_token_ids",
    ids: "response_ids",
    mask: "loss_masks",
    logprobs: "rollout_logprobs",
    reward: "rewards",
    group: "trajectory_ids.instance_id",
  }),
  openrlhf: readOpenrlhf,
  areal: readerOf({
    ids: "input_ids",
    mask: "loss_mask",
    logprobs: "logprobs",
    versions: "versions",
    reward: "rewards",
    group: "group",
  }),
  "prime-rl": readPrimeRl,
  verifiers: readVerifiers,
  "nemo-rl": readNemoRl,
  tinker: readTinker,
};
