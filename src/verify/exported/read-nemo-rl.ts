import { isObject } from "../../values/is-object.ts";
import { quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import {
  derivedPart,
  joinParts,
  memberAt,
  readPart,
  type ExportedRecord,
  type Part,
} from "./exported-row.ts";

/** Reads a NeMo Gym result. The prompt of each call must extend the call before it. */
export function readNemoRl(record: RawRow): ExportedRecord {
  const found: Violation[] = [];
  const output = readPart(record, "response.output", found);
  const [ids, mask, logprobs]: [Part[], Part[], Part[]] = [[], [], []];
  let known: unknown[] = [];
  for (const [index, call] of output.values.entries()) {
    const place = output.place(index);
    const named = isObject(call) ? call : {};
    const own: Violation[] = [];
    const [before, sampled, scores] = [
      "prompt_token_ids",
      "generation_token_ids",
      "generation_log_probs",
    ].map((name) => {
      const part = readPart(named, name, own);
      return { ...part, place: (at: number) => `${place}.${part.place(at)}` };
    }) as [Part, Part, Part];
    found.push(...own.map(({ rule, detail }) => ({ rule, detail: `${place}: ${detail}` })));
    const wrong = known.findIndex((id, at) => before.values[at] !== id);
    if (wrong >= 0) {
      const detail = `${before.place(wrong)} is ${quote(before.values[wrong])}, and ${quote(known[wrong])} before`;
      found.push({ rule: "alignment", detail });
    }
    if (scores.values.length !== sampled.values.length) {
      const detail = `${place}.generation_log_probs has ${scores.values.length} entries for ${sampled.values.length} ids`;
      found.push({ rule: "length", detail });
    }
    const added = before.values.slice(known.length);
    const from = known.length;
    ids.push({ values: added, place: (at) => before.place(at + from) }, sampled);
    const none = added.map(() => 0);
    mask.push(
      derivedPart(none, place),
      derivedPart(
        sampled.values.map(() => 1),
        place,
      ),
    );
    logprobs.push(derivedPart(none, place), scores);
    known = [...before.values, ...sampled.values];
  }
  return {
    rows: [{ ids: joinParts(ids), mask: joinParts(mask), logprobs: joinParts(logprobs) }],
    reward: record["reward"],
    group: record["group"],
    rollout: memberAt(record, "response.id"),
    found,
  };
}
