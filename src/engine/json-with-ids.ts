import { assertInvariant } from "../errors.ts";
import { lendBytes } from "../internal/lent-bytes.ts";
import { idSlack, mostBytesPerId, writeIds } from "../internal/write-ids.ts";
import { largestTokenId } from "./token-id.ts";

/**
 * The JSON of an object with a member more, a list of ids, in UTF-8. A prompt has many thousands of ids
 * and is sent each turn; a general writer takes several times as long, and makes a text of it that has
 * to be made into bytes.
 *
 * @returns bytes that are lent (see `lendBytes()`).
 */
export function jsonWithIds(
  fields: Readonly<Record<string, unknown>>,
  { name, ids }: { readonly name: string; readonly ids: readonly number[] },
): Uint8Array {
  const json = JSON.stringify(fields);
  const head = `${json.slice(0, -1)}${json === "{}" ? "" : ","}${JSON.stringify(name)}:[`;
  const headLength = Buffer.byteLength(head);
  const bytes = lendBytes(headLength + ids.length * mostBytesOf(ids) + idSlack + 2);
  bytes.write(head);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = ids.length === 0 ? headLength : writeIds(view, headLength, ids);
  assertInvariant(end >= headLength, `an id is a whole number from 0 to ${largestTokenId}`);
  bytes[end++] = "]".charCodeAt(0);
  bytes[end++] = "}".charCodeAt(0);
  return bytes.subarray(0, end);
}

/** Nearly all vocabularies are below a million. */
function mostBytesOf(ids: readonly number[]): number {
  let largest = 0;
  for (let index = 0; index < ids.length; index++) largest = Math.max(largest, ids[index]!);
  return largest < 1_000_000 ? "999999,".length : mostBytesPerId;
}
