import { expertBytes, type ExpertShape } from "../../columns/column-specs.ts";
import { ReplyProblem, show } from "../http/reply-reading.ts";

const magic = Buffer.from("\x93NUMPY", "latin1");

/** The header of rows: three dimensions, row by row. */
const headerPattern =
  /^\{'descr': '([^']*)', 'fortran_order': False, 'shape': \((\d+), (\d+), (\d+)\), \} *\n$/;

/** The most bytes of a file before its rows. */
export const npyHeaderBytes = 1024;

/**
 * Returns the rows of a `.npy` file with routed experts, without copying them.
 *
 * **Source:** numpy/numpy numpy/lib/_format_impl.py; recorded from vLLM 0.32.0.
 *
 * @throws ReplyProblem if it is no such file, or its shape or type is not the one that was requested.
 */
export function readNpyRows(file: Uint8Array, shape: ExpertShape): Uint8Array {
  const place = "choices[0].routed_experts";
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length);
  const major = bytes[magic.length];
  const lengthBytes = major === 1 ? 2 : 4;
  const start = magic.length + 2 + lengthBytes;
  if (!bytes.subarray(0, magic.length).equals(magic) || bytes.length < start) {
    throw new ReplyProblem(`${place} is not a .npy file`, "one");
  }
  const headerLength = bytes.readUIntLE(magic.length + 2, lengthBytes);
  const end = start + headerLength;
  const header = bytes.toString("latin1", start, Math.min(end, npyHeaderBytes));
  const found = headerPattern.exec(header);
  if (found === null) {
    throw new ReplyProblem(
      `${place} has the header ${show(header)}`,
      "a table of three dimensions",
    );
  }
  const [, type, rows, layers, perToken] = found;
  const wantedType = expertBytes(shape) === 1 ? "|u1" : "<u2";
  if (type !== wantedType) {
    throw new ReplyProblem(
      `${place} has the type ${show(type)}`,
      `${show(wantedType)}, of a model with ${shape.expertCount} experts`,
    );
  }
  if (Number(layers) !== shape.layerCount || Number(perToken) !== shape.perToken) {
    throw new ReplyProblem(
      `${place} has ${layers} layers with ${perToken} experts a token`,
      `${shape.layerCount} with ${shape.perToken}, as in the run's columns`,
    );
  }
  const size = Number(rows) * shape.layerCount * shape.perToken * expertBytes(shape);
  if (bytes.length - end === size) return file.subarray(end);
  throw new ReplyProblem(`${place} has ${bytes.length - end} bytes for ${rows} rows`, `${size}`);
}
