import { expertBytes, type ExpertShape } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import type { ColumnPart } from "../columns/column-part.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import type { RouteTable } from "./input/trainer-row.ts";

/**
 * Reads the routes of a row. Does not compare their bytes with the hash; `turnwright verify` does.
 *
 * @param parts - The row's parts, contiguous from token 0 on.
 * @throws UsageError if no file has a part, or the parts are not those of a row.
 */
export async function readEngineRoutes(
  parts: readonly ColumnPart[],
  shape: ExpertShape,
  source: ColumnSource,
): Promise<RouteTable> {
  const { layerCount, perToken } = shape;
  const rowSize = layerCount * perToken * expertBytes(shape);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const bytes = new Uint8Array(rows * rowSize);
  let known = 0;
  for (const part of parts) {
    if (part.from !== known || part.size !== part.rows * rowSize) {
      throw new UsageError(
        `the run has a part of ${part.rows} routes from token ${part.from} on with ${part.size} bytes, expected ` +
          `${part.rows * rowSize} from token ${known} on; turnwright verify checks the run's folder`,
      );
    }
    bytes.set(part.bytes ?? (await source.read(part)), known * rowSize);
    known += part.rows;
  }
  const ids = expertBytes(shape) === 1 ? bytes : new Uint16Array(bytes.buffer);
  return { rows, layerCount, perToken, ids };
}
