import { assertInvariant } from "../../errors.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { roomForIds, writeIds } from "../../json/write-ids.ts";
import { knownIdText } from "../growing-ids.ts";
import { largestTokenId, type TokenIds } from "../token-id.ts";

/**
 * Returns the JSON of `fields` with one more member, a list of ids, in UTF-8.
 *
 * A prompt has many thousands of ids and is sent each turn. `JSON.stringify` takes several times as
 * long and makes a text that must then be encoded. For a record that is sent repeatedly, only the new
 * ids are written (`knownIdText()`).
 *
 * @returns lent bytes (see `acquireBytes()`).
 */
export function jsonWithIds(
  fields: Readonly<Record<string, unknown>>,
  { name, ids }: { readonly name: string; readonly ids: TokenIds },
): Uint8Array {
  const json = JSON.stringify(fields);
  const head = `${json.slice(0, -1)}${json === "{}" ? "" : ","}${JSON.stringify(name)}:[`;
  const headLength = Buffer.byteLength(head);
  const kept = knownIdText(ids);
  const bytes = acquireBytes(headLength + (kept?.length ?? roomForIds(ids)) + 2);
  bytes.write(head);
  let end = headLength;
  if (kept !== undefined) {
    bytes.set(kept, end);
    end += kept.length;
  } else if (ids.length > 0) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    end = writeIds(view, end, ids);
    assertInvariant(end >= 0, `an id is a whole number from 0 to ${largestTokenId}`);
  }
  bytes[end++] = "]".charCodeAt(0);
  bytes[end++] = "}".charCodeAt(0);
  return bytes.subarray(0, end);
}
