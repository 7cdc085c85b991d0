import { UsageError } from "../../errors.ts";
import type { RouteTable } from "./trainer-row.ts";

/** The element types of routes, by NumPy's names and by the codes of `.npy` files. */
const elementTypes = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
} as const;

const typeNames = Object.keys(elementTypes).join(", ");

const codes: Readonly<Record<string, keyof typeof elementTypes>> = {
  "|u1": "uint8",
  "|i1": "int8",
  "<u2": "uint16",
  "<i2": "int16",
  "<i4": "int32",
  "<i8": "int64",
};

const magic = "\u0093NUMPY";

/**
 * Reads routes from the bytes of a `.npy` file.
 *
 * **Source:** NumPy's format, versions 1.0 and 2.0 (`numpy.lib.format`).
 *
 * @throws UsageError if the bytes are not such a file, or its array has another type, order or number of dimensions.
 */
export function readNpy(bytes: Uint8Array): RouteTable {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isNpy = bytes.length > 12 && Buffer.from(bytes.subarray(0, 6)).toString("latin1") === magic;
  if (!isNpy) throw new UsageError("it is not a .npy file, expected one as numpy.save() writes it");
  const isFirst = bytes[6] === 1;
  const start = isFirst ? 10 : 12;
  const length = isFirst ? view.getUint16(8, true) : view.getUint32(8, true);
  const header = Buffer.from(bytes.subarray(start, start + length)).toString("latin1");
  const code = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? "";
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "";
  const dtype = codes[code];
  const order = /'fortran_order':\s*True/.test(header) ? "Fortran" : "C";
  if (dtype === undefined || order !== "C") {
    throw new UsageError(
      `its array has the type ${code || "(none)"} in ${order} order, expected ${typeNames} in C order`,
    );
  }
  const sizes = shape.split(",").flatMap((part) => (part.trim() === "" ? [] : [Number(part)]));
  return toRouteTable(bytes.subarray(start + length), { dtype, shape: sizes });
}

/**
 * Reads routes from raw little-endian bytes.
 *
 * @throws UsageError if type or shape are not those of routes, or the bytes have another number.
 */
export function toRouteTable(
  bytes: Uint8Array,
  { dtype, shape }: { readonly dtype: unknown; readonly shape: unknown },
): RouteTable {
  const isShape =
    Array.isArray(shape) &&
    shape.length === 3 &&
    shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isShape) {
    throw new UsageError(
      `the shape ${JSON.stringify(shape)} is not one of routes, expected [tokens, layers, experts a token]`,
    );
  }
  const [rows = 0, layerCount = 0, perToken = 0] = shape as readonly number[];
  const List = elementTypes[dtype as keyof typeof elementTypes];
  if (List === undefined) {
    throw new UsageError(
      `the type ${JSON.stringify(dtype)} is not one of routes, expected ${typeNames}`,
    );
  }
  const size = rows * layerCount * perToken * List.BYTES_PER_ELEMENT;
  if (bytes.length !== size) {
    throw new UsageError(
      `${bytes.length} bytes are not an array of ${shape.join(" x ")} ${String(dtype)}, expected ${size}`,
    );
  }
  // A copy, because lists begin at a multiple of their elements' size.
  const { buffer } = new Uint8Array(bytes);
  const ids = new List(buffer);
  const numbers = ids instanceof BigInt64Array ? Int32Array.from(ids, Number) : ids;
  return { rows, layerCount, perToken, ids: numbers };
}
