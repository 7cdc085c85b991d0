import { createHash, hash } from "node:crypto";
import { isLight, jsonParts, type JsonPart } from "../../json/json-pieces.ts";
import { isShareOver, isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { utf8Bytes } from "../../text/utf8-bytes.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { LineBytes } from "./line-bytes.ts";
import { rowParts } from "../folder/row-parts.ts";

/** A line of JSON, ready to be written. */
export interface EncodedLine {
  /** UTF-8, one after the other, the line feed included. */
  readonly blocks: readonly Uint8Array[];
  /** What `hashRow()` says of the value. */
  readonly hash: string;
}

/**
 * The value's line, the same bytes as `JSON.stringify()` gives, made in turns: others get theirs.
 *
 * @param allocate - Gives the room. Default: Node's own, as it is.
 */
export async function encodeLine(
  value: unknown,
  allocate?: (size: number) => Buffer,
): Promise<EncodedLine> {
  if (isTurnOver()) await takeTurn();
  if (isLight(value)) {
    const line = utf8Bytes(`${JSON.stringify(value) ?? "null"}\n`, allocate);
    return { blocks: [line], hash: hash("sha256", line.subarray(0, -1), "hex") };
  }
  return await encodeParts(jsonParts(value), allocate);
}

/** The line of a training row, as `encodeLine()` gives it. */
export async function encodeRow(
  row: Sample,
  allocate?: (size: number) => Buffer,
): Promise<EncodedLine> {
  if (isTurnOver()) await takeTurn();
  return await encodeParts(rowParts(row), allocate);
}

async function encodeParts(
  parts: Iterable<JsonPart>,
  allocate?: (size: number) => Buffer,
): Promise<EncodedLine> {
  const blocks: Uint8Array[] = [];
  const whole = createHash("sha256");
  const line = new LineBytes((block) => {
    whole.update(block);
    blocks.push(block);
  }, allocate);
  for (const part of parts) {
    const before = blocks.length;
    line.add(part);
    // What is long for itself was handed on at once.
    if (!line.isBlockFull && blocks.length === before) continue;
    line.flush();
    if (isShareOver()) await takeTurn();
  }
  line.flush();
  blocks.push(lineFeed);
  return { blocks, hash: whole.digest("hex") };
}

const lineFeed = Buffer.from("\n");

/** What `hashRow()` says of a line that is written as `encodeLine()` writes it. */
export function hashLine(line: Uint8Array): string {
  return hash("sha256", line, "hex");
}
