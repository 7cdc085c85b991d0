import { createHash, hash } from "node:crypto";
import { isLight, jsonPieces } from "../internal/json-pieces.ts";
import { isTurnOver, takeTurn } from "../internal/take-turn.ts";
import { utf8Bytes } from "../internal/utf8-bytes.ts";

/** A line of JSON, ready to be written. */
export interface EncodedLine {
  /** UTF-8, one after the other, the line feed included. */
  readonly blocks: readonly Uint8Array[];
  /** What `hashRow()` says of the value. */
  readonly hash: string;
}

/** Characters that are encoded at once. */
const blockLength = 64 * 1024;

/** The value's line, the same bytes as `JSON.stringify()` gives, made in turns: others get theirs. */
export async function encodeLine(value: unknown): Promise<EncodedLine> {
  if (isTurnOver()) await takeTurn();
  if (isLight(value)) {
    const line = utf8Bytes(`${JSON.stringify(value) ?? "null"}\n`);
    return { blocks: [line], hash: hash("sha256", line.subarray(0, -1), "hex") };
  }
  const blocks: Uint8Array[] = [];
  const whole = createHash("sha256");
  let text = "";
  const encode = (): void => {
    const bytes = utf8Bytes(text);
    whole.update(bytes);
    blocks.push(bytes);
    text = "";
  };
  for (const piece of jsonPieces(value)) {
    text += piece;
    if (text.length < blockLength) continue;
    encode();
    await takeTurn();
  }
  encode();
  blocks.push(Buffer.from("\n"));
  return { blocks, hash: whole.digest("hex") };
}

/** What `hashRow()` says of a line that is written as `encodeLine()` writes it. */
export function hashLine(line: Uint8Array): string {
  return hash("sha256", line, "hex");
}
