import { createHash, hash } from "node:crypto";
import { isLight, jsonParts, type JsonPart } from "../../json/json-pieces.ts";
import { isShareOver, isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { utf8Bytes } from "../../text/utf8-bytes.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { LineBytes } from "./line-bytes.ts";
import { rowParts } from "../folder/row-parts.ts";

/** A line of JSON, ready to be written. */
export interface EncodedLine {
  /** The line's UTF-8 bytes in order, with its line feed. */
  readonly blocks: readonly Uint8Array[];
  /** The hash of the value (see `hashRow()`). */
  readonly hash: string;
}

/**
 * Encodes a value as a line with the bytes of `JSON.stringify()`. Lets other work run in between.
 *
 * @param allocate - Allocates the blocks. Default: Node's own allocation.
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

/** Encodes a training row as a line, with the same bytes as `encodeLine()`. */
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
  const hasher = createHash("sha256");
  const line = new LineBytes((block) => {
    hasher.update(block);
    blocks.push(block);
  }, allocate);
  for (const part of parts) {
    const before = blocks.length;
    line.add(part);
    // A long value has written its own blocks already.
    if (!line.isBlockFull && blocks.length === before) continue;
    line.flush();
    if (isShareOver()) await takeTurn();
  }
  line.flush();
  blocks.push(lineFeed);
  return { blocks, hash: hasher.digest("hex") };
}

const lineFeed = Buffer.from("\n");

/** Returns the hash that `hashRow()` gives for a line of `encodeLine()`. */
export function hashLine(line: Uint8Array): string {
  return hash("sha256", line, "hex");
}
