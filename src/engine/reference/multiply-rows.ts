import type { Kernels } from "./kernels/build-kernels.ts";
import { PANEL_WIDTH } from "./kernels/multiply.ts";
import type { LinearAddress } from "./model/weight-plan.ts";

/** Number of rows that are multiplied together, so that they stay in the core's cache. */
const ROWS_IN_CACHE = 32;

/**
 * Multiplies rows without gaps with a matrix. `adds` adds the product to `out`; the matrix then has no bias. A row's
 * result has the same bits with any other rows.
 */
export function multiplyRows(
  kernels: Kernels,
  { weights, bias, inputSize, outputSize }: LinearAddress,
  { x, rows, out, adds = false }: { x: number; rows: number; out: number; adds?: boolean },
): void {
  const inputBytes = inputSize * 4;
  const outputBytes = outputSize * 4;
  for (let row = 0; row < rows; row += ROWS_IN_CACHE) {
    const to = out + row * outputBytes;
    kernels.multiply(
      x + row * inputBytes,
      inputBytes,
      Math.min(ROWS_IN_CACHE, rows - row),
      inputBytes,
      weights,
      inputBytes * PANEL_WIDTH,
      outputSize / PANEL_WIDTH,
      to,
      outputBytes,
      adds ? to : bias,
      adds ? outputBytes : 0,
    );
  }
}
