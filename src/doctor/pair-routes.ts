import { expertBytes, type ExpertShape } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import type { ColumnPart } from "../columns/column-part.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import type { RouteTable, TrainerRow } from "./input/trainer-row.ts";

/**
 * Reads the routes of both sides.
 *
 * @param parts - The row's parts, contiguous from token 0 on.
 * @throws UsageError if a side's routes cannot be read, or the trainer's are of another shape.
 */
export async function pairRoutes(
  parts: readonly ColumnPart[],
  routedExperts: NonNullable<TrainerRow["routedExperts"]>,
  { shape, source }: { readonly shape: ExpertShape; readonly source: ColumnSource },
): Promise<{ readonly engine: RouteTable; readonly trainer: RouteTable }> {
  const trainer = typeof routedExperts === "function" ? await routedExperts() : routedExperts;
  const { layerCount, perToken } = trainer;
  if (layerCount !== shape.layerCount || perToken !== shape.perToken) {
    throw new UsageError(
      `${layerCount} x ${perToken} ids a token, the run has ${shape.layerCount} x ${shape.perToken}`,
    );
  }
  return { engine: await readEngineRoutes(parts, shape, source), trainer };
}

/** Reads the engine's routes. Does not compare their bytes with the hash; `turnwright verify` does. */
async function readEngineRoutes(
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
