import type { JsonFields } from "./json-fields.ts";

/** The advice in errors about a model that the engine does not support. */
export const REMEDY = "serve other models with an inference server and use its engine";

/**
 * Reads a size. Kernels process 16 floats at a time, so sizes are multiples of 16, or of 8 if they
 * have two halves.
 */
export function readSize(
  config: JsonFields,
  field: string,
  { multipleOf, fallback }: { multipleOf: number; fallback?: number },
): number {
  const size = config.count(field, fallback);
  if (size % multipleOf === 0) return size;
  throw config.error(field, `a multiple of ${multipleOf}; ${REMEDY}`);
}
