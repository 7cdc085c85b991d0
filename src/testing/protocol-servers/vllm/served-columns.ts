import { expertBytes } from "../../../columns/column-specs.ts";
import type { ColumnModel, TestColumns } from "../shared/column-model.ts";
import { drawnTokens, encodeExperts } from "../shared/column-rows.ts";
import type { LiveSequence } from "../shared/request-scheduler.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

/** The columns of a server, with the model that computes their values. */
export type ServedColumns = Omit<TestColumns, "model"> & { readonly model: ColumnModel };

type Sequence = LiveSequence<VllmSequenceRequest>;

/** Encodes the routes of a finished sequence as a `.npy` file in base64. `null` if there are none. */
export function encodeRoutes(
  sequence: Sequence,
  { routedExperts: shape, model }: ServedColumns,
): string | null {
  const { request, finish, hasRun } = sequence;
  if (shape === undefined || finish === undefined || !hasRun) return null;
  const type = expertBytes(shape) === 1 ? Uint8Array : Uint16Array;
  const start = request.routesFrom;
  const { rows, bytes } = encodeExperts(sequence, { start, shape, model, type });
  const name = type === Uint8Array ? "|u1" : "<u2";
  const dimensions = `(${rows}, ${shape.layerCount}, ${shape.perToken})`;
  const header = `{'descr': '${name}', 'fortran_order': False, 'shape': ${dimensions}, }`;
  return Buffer.concat([encodeHeader(header), bytes]).toString("base64");
}

/**
 * Encodes the header of the file. The data begins at a multiple of 64 bytes. **Source:** numpy/numpy
 * numpy/lib/_format_impl.py.
 */
function encodeHeader(header: string): Buffer {
  const start = 10;
  const length = Math.ceil((start + header.length + 1) / 64) * 64 - start;
  const head = Buffer.from("\x93NUMPY\x01\x00", "latin1");
  const size = Buffer.alloc(2);
  size.writeUInt16LE(length);
  return Buffer.concat([head, size, Buffer.from(`${header.padEnd(length - 1)}\n`)]);
}

/** Returns the kept ids of each token from `since` on, ascending. `null` if the server returns none. */
export function encodeMask(
  sequence: Sequence,
  since: number,
  { keptTokens, model }: ServedColumns,
): readonly (readonly number[])[] | null {
  const tokens = drawnTokens(sequence, since);
  if (keptTokens === undefined || tokens.length === 0) return null;
  const most = Number(sequence.request.samplingParams["top_k"]);
  return tokens.map((token) => model.kept(token, most).ids.toSorted((a, b) => a - b));
}
