import { arrayBytes, type PlacedArray } from "../../../export/columns/column-sink.ts";
import type { ArraysReader } from "./arrays-reader.ts";
import type { FoundRoutes } from "./found-arrays.ts";

/** The greatest number of bytes that are read at once. */
const blockSize = 256 * 1024;

/** Checks the values of an array that lies within the file. Reports the first wrong one. */
export async function checkRouteValues(
  placed: PlacedArray,
  { place, endsZero, areExperts }: Pick<FoundRoutes, "place" | "endsZero" | "areExperts">,
  arrays: ArraysReader,
): Promise<readonly string[]> {
  const { shape, dtype } = placed;
  const [rows = 0, , perToken = 1] = shape;
  const rowLength = shape.slice(1).reduce((product, length) => product * length, 1);
  const perBlock = Math.max(
    1,
    Math.floor(blockSize / Math.max(1, arrayBytes(shape.slice(1), dtype))),
  );
  for (let start = 0; start < rows; start += perBlock) {
    const end = Math.min(rows, start + perBlock);
    const values = await arrays.rowValues(placed, start, end);
    const wrong = findWrong(values, areExperts ? perToken : 1);
    if (wrong !== undefined) {
      const row = start + Math.floor(wrong.at / rowLength);
      return [`${place}, row ${row}: ${wrong.what}`];
    }
    if (endsZero !== true || end < rows) continue;
    for (let at = values.length - rowLength; at < values.length; at++) {
      if (values[at] !== 0) return [`${place}, row ${rows - 1}: expected zeros for the last id`];
    }
  }
  return [];
}

/** Finds a negative value, or an expert that occurs twice in a layer of a token. */
export function findWrong(
  values: ArrayLike<number>,
  perToken: number,
): { readonly at: number; readonly what: string } | undefined {
  for (let start = 0; start < values.length; start += perToken) {
    let isZero = true;
    let twice = -1;
    for (let at = start; at < start + perToken; at++) {
      const value = values[at]!;
      if (value < 0) return { at, what: `the id ${value} is negative` };
      if (value !== 0) isZero = false;
      for (let other = start; other < at; other++) if (values[other] === value) twice = at;
    }
    if (twice < 0 || isZero) continue;
    return { at: twice, what: `the expert ${values[twice]} occurs twice in a layer` };
  }
  return undefined;
}
