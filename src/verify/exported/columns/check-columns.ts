import { isObject } from "../../../values/is-object.ts";
import { arrayTypes, type ArrayType } from "../../../export/columns/array-type.ts";
import { arrayBytes, type PlacedArray } from "../../../export/columns/column-sink.ts";
import type { ExportTarget } from "../../../export/exporters.ts";
import { isCount, quote, type RawRow, type Violation } from "../../../trajectory/violation.ts";
import type { ArraysReader } from "./arrays-reader.ts";
import { checkNemoRoutes } from "./check-nemo-routes.ts";
import { checkRouteValues } from "./check-route-values.ts";
import { checkSets } from "./check-sets.ts";
import { checkTeacher } from "./check-teacher.ts";
import { checkTops } from "./check-tops.ts";
import { findColumns, type FoundRoutes, type FoundSets } from "./found-arrays.ts";
import { isMissing } from "./is-missing.ts";

/** Checks the side columns of an exported file, record by record. */
export class ColumnsCheck {
  readonly #as: ExportTarget;
  readonly #arrays: ArraysReader;
  /** The members of side columns, each with true if the first record has it. */
  readonly #has = new Map<string, boolean>();
  /** By member: the number of layers, and of entries of a token, in the first array. */
  readonly #inner = new Map<string, string>();
  /** The first byte after the arrays so far. */
  #end = 0;

  constructor(as: ExportTarget, arrays: ArraysReader) {
    this.#as = as;
    this.#arrays = arrays;
  }

  /** Checks the columns of a record: places, shapes, counts, ranges and sets. */
  async check(record: RawRow): Promise<readonly Violation[]> {
    if (this.#as === "nemo-rl") return checkNemoRoutes(record, this.#has, this.#inner);
    const { routes, sets } = findColumns(this.#as, record);
    const details: string[] = [];
    if (this.#as === "miles") details.push(...checkTops(record, this.#has));
    for (const one of routes) details.push(...(await this.#checkRoutes(one)));
    for (const one of sets) details.push(...(await this.#checkSets(one)));
    details.push(
      ...(await checkTeacher(this.#as, record, {
        has: this.#has,
        arrays: this.#arrays,
        toArray: (place, value) => {
          const placed = toPlaced(value);
          if (placed === undefined) return { wrong: [noArray(place, value)] };
          return { placed, wrong: this.#checkPlace(placed, place, false) };
        },
      })),
    );
    return details.map((detail) => ({ rule: "columns", detail }));
  }

  /** Checks the end of the file: no array may follow the last one. */
  end(): readonly Violation[] {
    const { size, file } = this.#arrays;
    if (size === undefined || size === this.#end) return [];
    const detail = `${file} has ${size} bytes, and the arrays of the rows end at ${this.#end}`;
    return [{ rule: "columns", detail }];
  }

  async #checkRoutes(found: FoundRoutes): Promise<readonly string[]> {
    const { place, name, value, rows, types, isShared } = found;
    const missing = isMissing(this.#has, { place, name, value });
    if (value === undefined || value === null) return missing;
    const placed = toPlaced(value);
    if (placed === undefined) return [...missing, noArray(place, value)];
    const wrong = this.#checkPlace(placed, place, isShared === true);
    const [count, ...inner] = placed.shape;
    if (!types.includes(placed.dtype)) {
      wrong.push(`${place} has the type ${placed.dtype}, expected ${types.join(" or ")}`);
    }
    if (count !== rows || inner.length !== 2) {
      wrong.push(`${place} has the shape ${quote(placed.shape)}, expected ${rows} rows of layers`);
    }
    const first = this.#inner.get(name) ?? inner.join("x");
    this.#inner.set(name, first);
    if (first !== inner.join("x")) {
      wrong.push(
        `${place} has rows of ${inner.join("x")}, and the first array of the file ${first}`,
      );
    }
    if (wrong.length > 0) return [...missing, ...wrong];
    return [...missing, ...(await checkRouteValues(placed, found, this.#arrays))];
  }

  async #checkSets(found: FoundSets): Promise<readonly string[]> {
    const { place, name, ids, bounds, form } = found;
    const missing = isMissing(this.#has, { place, name, value: ids });
    if (ids === undefined || ids === null) return missing;
    const placed = toPlaced(ids);
    if (placed === undefined) return [...missing, noArray(place, ids)];
    // The masks of a branch's nodes lie before the routes of the next branch.
    const isShared = form === "counts";
    const wrong = this.#checkPlace(placed, place, isShared);
    const placedBounds = form === "support" ? undefined : toPlaced(bounds);
    if (form !== "support") {
      if (placedBounds === undefined) wrong.push(noArray(`${place}'s ${form}`, bounds));
      else wrong.push(...this.#checkPlace(placedBounds, `${place}'s ${form}`, isShared));
    }
    for (const one of [placed, placedBounds]) {
      if (one === undefined || one.dtype === "int32") continue;
      wrong.push(`${place} has the type ${one.dtype}, expected int32`);
    }
    if (wrong.length > 0) return [...missing, ...wrong];
    return [
      ...missing,
      ...(await checkSets(found, { ids: placed, bounds: placedBounds }, this.#arrays)),
    ];
  }

  /** Checks that an array lies within the file, after the arrays before it. */
  #checkPlace({ offset, shape, dtype }: PlacedArray, place: string, isShared: boolean): string[] {
    const { size, file } = this.#arrays;
    const end = offset + arrayBytes(shape, dtype);
    if (size === undefined) return [`${place} names an array, and ${file} does not exist`];
    if (end > size) return [`${place} ends at byte ${end}, and ${file} at ${size}`];
    const before = this.#end;
    this.#end = Math.max(this.#end, end);
    if (isShared) return [];
    if (offset % 64 !== 0) return [`${place} begins at byte ${offset}, no multiple of 64`];
    if (offset >= before) return [];
    return [`${place} begins at byte ${offset}, within an array before it`];
  }
}

function noArray(place: string, value: unknown): string {
  return `${place} is ${quote(value)}, expected offset, shape and dtype of an array`;
}

function toPlaced(value: unknown): PlacedArray | undefined {
  if (!isObject(value)) return undefined;
  const { offset, shape, dtype } = value;
  const isShape = Array.isArray(shape) && shape.length > 0 && shape.every((one) => isCount(one));
  if (!isCount(offset) || !isShape || !(arrayTypes as readonly unknown[]).includes(dtype))
    return undefined;
  return { offset, shape, dtype: dtype as ArrayType };
}
