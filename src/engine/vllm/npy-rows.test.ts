import { expect, test } from "vitest";
import { readNpyRows } from "./npy-rows.ts";

const shape = { layerCount: 2, perToken: 2, expertCount: 8 };
const rows = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 0]);

function file(
  header: string,
  { bytes = rows, version = 1 }: { bytes?: Uint8Array; version?: number } = {},
): Uint8Array {
  const size = Buffer.alloc(version === 1 ? 2 : 4);
  const text = `${header.padEnd(117)}\n`;
  size.writeUIntLE(text.length, 0, size.length);
  const magic = Buffer.from("\x93NUMPY", "latin1");
  return Buffer.concat([magic, Buffer.from([version, 0]), size, Buffer.from(text), bytes]);
}

const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }";

test.each([1, 2])("rows of version %i", (version) => {
  expect([...readNpyRows(file(header, { version }), shape)]).toEqual([...rows]);
});

test("ids above 256 experts", () => {
  const bytes = new Uint8Array(Uint16Array.from([300, 2, 3, 4]).buffer);
  const wide = "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 2), }";
  const read = readNpyRows(file(wide, { bytes }), { ...shape, expertCount: 384 });
  expect([...read]).toEqual([...bytes]);
});

test.each<[string, Uint8Array, string]>([
  ["no file", Buffer.from("{}"), "is not a .npy file"],
  ["another type", file(header.replace("|u1", "<i4")), 'has the type "<i4"'],
  ["a wide type for few experts", file(header.replace("|u1", "<u2")), 'has the type "<u2"'],
  ["columns first", file(header.replace("False", "True")), "has the header"],
  ["two dimensions", file(header.replace("(2, 2, 2)", "(2, 4)")), "has the header"],
  ["other layers", file(header.replace("(2, 2, 2)", "(1, 4, 2)")), "has 4 layers with 2 experts"],
  ["other experts", file(header.replace("(2, 2, 2)", "(1, 2, 4)")), "has 2 layers with 4 experts"],
  ["fewer rows", file(header.replace("(2,", "(1,")), "has 8 bytes for 1 rows"],
  ["a file that was cut off", file(header).subarray(0, -1), "has 7 bytes for 2 rows"],
])("%s", (_, bytes, problem) => {
  expect(() => readNpyRows(bytes, shape)).toThrow(problem);
});
