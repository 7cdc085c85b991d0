import { isObject } from "../../../values/is-object.ts";
import { quote, type RawRow, type Violation } from "../../../trajectory/violation.ts";
import { memberAt } from "../exported-row.ts";
import { isMissing } from "./is-missing.ts";

const name = "routed_experts";
const sizes: Readonly<Record<string, number>> = { int8: 1, int16: 2, int32: 4 };

/** Checks the texts of routes in a NeMo Gym result: each has a row for each id of its call. */
export function checkNemoRoutes(
  record: RawRow,
  has: Map<string, boolean>,
  inner: Map<string, string>,
): readonly Violation[] {
  const output = memberAt(record, "response.output");
  const items: readonly unknown[] = Array.isArray(output) ? output : [];
  return items.flatMap((item, index) => {
    const place = `response.output[${index}].${name}`;
    const value = memberAt(item, name);
    const found = [...isMissing(has, { place, name, value })];
    if (value !== undefined) found.push(...checkText(value, item, { place, inner }));
    return found.map((detail) => ({ rule: "columns", detail }));
  });
}

function checkText(
  value: unknown,
  item: unknown,
  { place, inner }: { readonly place: string; readonly inner: Map<string, string> },
): readonly string[] {
  const lengthOf = (list: string): number => {
    const ids = isObject(item) ? item[list] : undefined;
    return Array.isArray(ids) ? ids.length : 0;
  };
  const expected = lengthOf("prompt_token_ids") + lengthOf("generation_token_ids");
  const text = typeof value === "string" ? value : "";
  const [, type = "", rows, layers, perToken, data = ""] =
    /^nrlre1:(int8|int16|int32):(\d+)x(\d+)x(\d+):([^]*)$/.exec(text) ?? [];
  if (rows === undefined) return [`${place} is ${quote(value)}, expected nrlre1:TYPE:SHAPE:BASE64`];
  if (Number(rows) !== expected) {
    return [`${place} has ${rows} rows, expected ${expected}: one for each id of the call`];
  }
  const shape = `${layers}x${perToken}`;
  const first = inner.get(name) ?? shape;
  inner.set(name, first);
  if (first !== shape) return [`${place} has rows of ${shape}, and the first of the file ${first}`];
  const size = Buffer.byteLength(data, "base64");
  const wanted = expected * Number(layers) * Number(perToken) * sizes[type]!;
  return size === wanted ? [] : [`${place} has ${size} bytes, expected ${wanted}`];
}
