import { expertBytes, type ExpertShape } from "../columns/column-specs.ts";
import type { ColumnPart } from "../columns/column-part.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import type { RouteTable } from "./input/trainer-row.ts";

/**
 * Reads the routes of a row.
 *
 * @param parts - The row's parts, contiguous from token 0 on.
 * @throws UsageError if no file has a part.
 */
export async function readEngineRoutes(
  parts: readonly ColumnPart[],
  shape: ExpertShape,
  source: ColumnSource,
): Promise<RouteTable> {
  const { layerCount, perToken } = shape;
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const bytes = new Uint8Array(rows * layerCount * perToken * expertBytes(shape));
  let at = 0;
  for (const part of parts) {
    bytes.set(part.bytes ?? (await source.read(part)), at);
    at += part.size;
  }
  const ids = expertBytes(shape) === 1 ? bytes : new Uint16Array(bytes.buffer);
  return { rows, layerCount, perToken, ids };
}
