import { isObject } from "../../values/is-object.ts";
import type { RawRow, Violation } from "../../trajectory/violation.ts";
import { memberAt, readPart, type ExportedRecord, type Part } from "./exported-row.ts";
import { rowOfCalls } from "./row-of-calls.ts";

/** Reads a NeMo Gym result: a row whose calls have their complete prompts. */
export function readNemoRl(record: RawRow): ExportedRecord {
  const found: Violation[] = [];
  const output = readPart(record, "response.output", found);
  const calls = output.values.map((call, index) => {
    const place = output.place(index);
    const own: Violation[] = [];
    const part = (name: string): Part => {
      const { values, place: at } = readPart(isObject(call) ? call : {}, name, own);
      return { values, place: (entry) => `${place}.${at(entry)}` };
    };
    const read = {
      place,
      prompt: part("prompt_token_ids"),
      sampled: part("generation_token_ids"),
      logprobs: part("generation_log_probs"),
    };
    found.push(...own.map(({ rule, detail }) => ({ rule, detail: `${place}: ${detail}` })));
    return read;
  });
  return {
    rows: [rowOfCalls(calls, found)],
    reward: record["reward"],
    group: record["group"],
    rollout: memberAt(record, "response.id"),
    found,
  };
}
