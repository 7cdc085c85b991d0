import { quote, type Violation } from "../../trajectory/violation.ts";
import { derivedPart, joinParts, type ExportedRow, type Part } from "./exported-row.ts";

/** A policy call of an exported record, with its complete prompt. */
export interface ExportedCall {
  /** The path of the call, for messages. */
  readonly place: string;
  readonly prompt: Part;
  readonly sampled: Part;
  /** One logprob for each sampled id. */
  readonly logprobs: Part;
}

/** Joins calls to one row. The prompt of each call must extend the call before it. */
export function rowOfCalls(calls: readonly ExportedCall[], found: Violation[]): ExportedRow {
  const [ids, mask, logprobs]: [Part[], Part[], Part[]] = [[], [], []];
  let known: readonly unknown[] = [];
  for (const { place, prompt, sampled, logprobs: scores } of calls) {
    const wrong = known.findIndex((id, at) => prompt.values[at] !== id);
    if (wrong >= 0) {
      const detail = `${prompt.place(wrong)} is ${quote(prompt.values[wrong])}, and ${quote(known[wrong])} before`;
      found.push({ rule: "alignment", detail });
    }
    if (scores.values.length !== sampled.values.length) {
      const detail = `${nameOf(scores)} has ${scores.values.length} entries for ${sampled.values.length} ids`;
      found.push({ rule: "length", detail });
    }
    const added = prompt.values.slice(known.length);
    const from = known.length;
    ids.push({ values: added, place: (at) => prompt.place(at + from) }, sampled);
    const none = added.map(() => 0);
    const ones = sampled.values.map(() => 1);
    mask.push(derivedPart(none, place), derivedPart(ones, place));
    logprobs.push(derivedPart(none, place), scores);
    known = [...prompt.values, ...sampled.values];
  }
  return { ids: joinParts(ids), mask: joinParts(mask), logprobs: joinParts(logprobs) };
}

/** Returns the path of a list. */
function nameOf(part: Part): string {
  return part.place(0).replace(/\[0\](\.logprob)?$/, "");
}
