import { isObject } from "../../values/is-object.ts";
import { quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import { joinParts, readPart, toBit, type ExportedRecord, type Part } from "./exported-row.ts";

/** Reads a trace: one row for each branch, with one logprob for each sampled id. */
export function readVerifiers(record: RawRow): ExportedRecord {
  const found: Violation[] = [];
  const nodes = readPart(record, "nodes", found);
  const branches: { ids: Part[]; mask: Part[]; logprobs: Part[] }[] = [];
  for (const [index, node] of nodes.values.entries()) {
    const place = nodes.place(index);
    const named = isObject(node) ? node : {};
    const own: Violation[] = [];
    const [ids, mask, compact] = ["token_ids", "mask", "logprobs"].map((name) => {
      const part = readPart(named, name, own);
      return { ...part, place: (at: number) => `${place}.${part.place(at)}` };
    }) as [Part, Part, Part];
    found.push(...own.map(({ rule, detail }) => ({ rule, detail: `${place}: ${detail}` })));
    const { parent } = named;
    if (parent !== null && parent !== index - 1) {
      const detail = `${place}.parent is ${quote(parent)}, expected ${index - 1}, or null for a root`;
      found.push({ rule: "shape", detail });
    }
    if (parent === null || branches.length === 0) {
      branches.push({ ids: [], mask: [], logprobs: [] });
    }
    const trainedCount = mask.values.filter((bit) => bit === true).length;
    if (trainedCount !== compact.values.length) {
      const detail = `${place}.logprobs has ${compact.values.length} entries for ${trainedCount} trained tokens`;
      found.push({ rule: "length", detail });
    }
    let at = 0;
    const spread = mask.values.map((bit) => (bit === true ? compact.values[at++] : 0));
    const branch = branches.at(-1)!;
    branch.ids.push(ids);
    branch.mask.push({ ...mask, values: mask.values.map(toBit) });
    branch.logprobs.push({ values: spread, place: (entry) => `${place}.logprobs of ${entry}` });
  }
  return {
    rows: branches.map(({ ids, mask, logprobs }) => ({
      ids: joinParts(ids),
      mask: joinParts(mask),
      logprobs: joinParts(logprobs),
    })),
    reward: record["reward"],
    group: record["group"],
    rollout: record["id"],
    found,
  };
}
