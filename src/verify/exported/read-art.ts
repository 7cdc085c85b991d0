import { isObject } from "../../values/is-object.ts";
import { quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import {
  memberAt,
  readPart,
  type ExportedRecord,
  type ExportedRow,
  type Part,
} from "./exported-row.ts";
import { rowOfCalls, type ExportedCall } from "./row-of-calls.ts";

/** Reads a trajectory: a row for its messages and choices, and one for each additional history. */
export function readArt(record: RawRow): ExportedRecord {
  const found: Violation[] = [];
  const more = readPart(record, "additional_histories", found);
  const histories: readonly (readonly [unknown, string])[] = [
    [record, ""],
    ...more.values.map((history, index) => [history, `${more.place(index)}.`] as const),
  ];
  return {
    rows: histories.map(([history, prefix]) => readHistory(history, prefix, found)),
    reward: record["reward"],
    group: memberAt(record, "metadata.group"),
    rollout: memberAt(record, "metadata.rollout"),
    found,
  };
}

function readHistory(history: unknown, prefix: string, found: Violation[]): ExportedRow {
  const own: Violation[] = [];
  const entries = readPart(isObject(history) ? history : {}, "messages_and_choices", own);
  found.push(...own.map(({ rule, detail }) => ({ rule, detail: `${prefix}${detail}` })));
  const calls = entries.values.flatMap((entry, index): ExportedCall[] => {
    if (!isObject(entry) || !("finish_reason" in entry)) return [];
    const place = `${prefix}${entries.place(index)}`;
    return [readChoice(entry, place, found)];
  });
  return rowOfCalls(calls, found);
}

function readChoice(choice: RawRow, place: string, found: Violation[]): ExportedCall {
  const own: Violation[] = [];
  const part = (name: string): Part => {
    const { values, place: at } = readPart(choice, name, own);
    return { values, place: (index) => `${place}.${at(index)}` };
  };
  const [prompt, sampled] = [part("prompt_token_ids"), part("token_ids")];
  const scores = part("logprobs.content");
  found.push(...own.map(({ rule, detail }) => ({ rule, detail: `${place}: ${detail}` })));
  const wrong = scores.values.findIndex(
    (score, index) => memberAt(score, "token") !== `token_id:${String(sampled.values[index])}`,
  );
  if (wrong >= 0) {
    const detail = `${scores.place(wrong)}.token is ${quote(memberAt(scores.values[wrong], "token"))}, and the id is ${quote(sampled.values[wrong])}`;
    found.push({ rule: "alignment", detail });
  }
  const logprobs = {
    values: scores.values.map((score) => memberAt(score, "logprob")),
    place: (index: number) => `${scores.place(index)}.logprob`,
  };
  return { place, prompt, sampled, logprobs };
}
