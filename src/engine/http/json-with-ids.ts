import { assertInvariant } from "../../errors.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { idTextLength, roomForIds, writeIds } from "../../json/write-ids.ts";
import { knownIdText } from "../growing-ids.ts";
import { largestTokenId, type TokenIds } from "../token-id.ts";
import type { BodyBytes, ByteParts } from "./byte-parts.ts";

/** The number of ids above which a list is sent in parts. */
const mostIdsAtOnce = 16_384;

/** Number of ids in a part that is written for sending. */
const idsPerPart = 32_768;

const end = Buffer.from("]}");

/**
 * Returns the JSON of `fields` with one more member, a list of ids, in UTF-8.
 *
 * A prompt has many thousands of ids and is sent each turn. `JSON.stringify` takes several times as
 * long and makes a text that must then be encoded. For a record that is sent repeatedly, only the new
 * ids are written (`knownIdText()`).
 *
 * @returns lent bytes (see `acquireBytes()`), or parts for a long list: the kept text, or parts that write
 * the ids again each time. Requests that wait for their replies then need no copy of their prompts.
 */
export function jsonWithIds(
  fields: Readonly<Record<string, unknown>>,
  { name, ids }: { readonly name: string; readonly ids: TokenIds },
): BodyBytes {
  const json = JSON.stringify(fields);
  const head = Buffer.from(
    `${json.slice(0, -1)}${json === "{}" ? "" : ","}${JSON.stringify(name)}:[`,
  );
  const kept = knownIdText(ids);
  if (ids.length > mostIdsAtOnce) {
    return kept === undefined ? partsOfIds(head, ids) : partsOfText(head, kept);
  }
  const bytes = acquireBytes(head.length + (kept?.length ?? roomForIds(ids)) + end.length);
  bytes.set(head);
  let place = head.length;
  if (kept !== undefined) {
    bytes.set(kept, place);
    place += kept.length;
  } else if (ids.length > 0) {
    place = writeIds(viewOf(bytes), place, ids);
    assertInvariant(place >= 0, invalidId);
  }
  bytes.set(end, place);
  return bytes.subarray(0, place + end.length);
}

const invalidId = `an id is a whole number from 0 to ${largestTokenId}`;

function partsOfText(head: Uint8Array, text: Uint8Array): ByteParts {
  return Object.assign([head, text, end], {
    byteLength: head.length + text.length + end.length,
  });
}

function partsOfIds(head: Uint8Array, ids: TokenIds): ByteParts {
  const textLength = idTextLength(ids);
  assertInvariant(textLength >= 0, invalidId);
  return {
    byteLength: head.length + textLength + end.length,
    *[Symbol.iterator]() {
      yield head;
      for (let first = 0; first < ids.length; first += idsPerPart) {
        const part = ids.slice(first, first + idsPerPart);
        const bytes = Buffer.allocUnsafeSlow(roomForIds(part) + 1);
        const last = writeIds(viewOf(bytes), 0, part);
        const isEnd = first + part.length === ids.length;
        if (!isEnd) bytes[last] = ",".charCodeAt(0);
        yield bytes.subarray(0, isEnd ? last : last + 1);
      }
      yield end;
    },
  };
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
