import { isObject } from "../../../values/is-object.ts";
import { quote, type RawRow, type Violation } from "../../../trajectory/violation.ts";
import { memberAt } from "../exported-row.ts";
import { findWrong } from "./check-route-values.ts";
import { isMissing } from "./is-missing.ts";

const name = "routed_experts";
const lists = { int8: Int8Array, int16: Int16Array, int32: Int32Array };

/** Checks the texts of routes in a NeMo Gym result: each has a row for each id of its call, with valid experts. */
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
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  const rowLength = Number(layers) * Number(perToken);
  const List = lists[type as keyof typeof lists];
  const wanted = expected * rowLength * List.BYTES_PER_ELEMENT;
  if (bytes.length !== wanted) return [`${place} has ${bytes.length} bytes, expected ${wanted}`];
  const ids = new List(bytes.buffer);
  // The last id of a call may not be computed.
  const endsMissing = ids.subarray(ids.length - rowLength).every((id) => id === -1);
  const known = endsMissing ? ids.subarray(0, ids.length - rowLength) : ids;
  const wrong = findWrong(known, Number(perToken));
  return wrong === undefined
    ? []
    : [`${place}, row ${Math.floor(wrong.at / rowLength)}: ${wrong.what}`];
}
