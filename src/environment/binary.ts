import { Buffer } from "node:buffer";

/** Binary data. JavaScript does not report writes to it, so changes by code that holds a reference go unnoticed. */
export type Binary = ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** The constructor that all typed arrays inherit from. */
const anyTypedArray: unknown = Object.getPrototypeOf(Uint8Array.prototype);

/** True for an `ArrayBuffer` or a view of one, unless a user's class extends it. */
export function isBinary(value: unknown): value is Binary {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!ArrayBuffer.isView(value)) return prototype === ArrayBuffer.prototype;
  // Shared memory is meant to be shared, so it is not copied.
  if (!(value.buffer instanceof ArrayBuffer)) return false;
  const isOwn = prototype === DataView.prototype || prototype === Buffer.prototype;
  return isOwn || Object.getPrototypeOf(prototype) === anyTypedArray;
}

/**
 * Returns a text (not JSON) that is equal for equal binary data of one class. `undefined` for any
 * other value.
 */
export function binaryText(value: unknown): string | undefined {
  if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) return undefined;
  const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(value)
    ? value
    : { buffer: value, byteOffset: 0, byteLength: value.byteLength };
  const bytes = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
  // A Buffer counts as a byte array.
  return `${Object.prototype.toString.call(value)}(${bytes})`;
}

/** Returns the buffer that contains the bytes. Other views may use it too. */
export function bufferOf(value: Binary): ArrayBuffer {
  return ArrayBuffer.isView(value) ? value.buffer : value;
}

/** The range of a buffer that is copied. */
interface Span {
  start: number;
  end: number;
  copy: ArrayBuffer | undefined;
}

/**
 * Copies binary data. Views of one buffer share one copy of the range that they cover together. The
 * rest of the buffer is not copied, because a Node.js Buffer may be part of a pool.
 */
export class BinaryCopies {
  readonly #spans = new Map<ArrayBuffer, Span>();

  /** Registers a value to copy. Register all values before you copy the first one. */
  note(value: Binary): void {
    const { start, end } = rangeOf(value);
    const known = this.#spans.get(bufferOf(value));
    if (known === undefined || (known.copy !== undefined && !covers(known, value))) {
      this.#spans.set(bufferOf(value), { start, end, copy: undefined });
    } else if (known.copy === undefined) {
      known.start = Math.min(known.start, start);
      known.end = Math.max(known.end, end);
    }
  }

  /** The size in bytes of the copies of all registered values. */
  get byteLength(): number {
    return [...this.#spans.values()].reduce((sum, { start, end }) => sum + end - start, 0);
  }

  copy(value: Binary): Binary {
    this.note(value);
    const buffer = bufferOf(value);
    const span = this.#spans.get(buffer)!;
    span.copy ??= buffer.slice(span.start, span.end);
    return ArrayBuffer.isView(value) ? viewOnto(span.copy, value, span.start) : span.copy;
  }
}

/**
 * Returns the value's range within its buffer. The start is aligned, so that a number of any size
 * may begin there.
 */
function rangeOf(value: Binary): { readonly start: number; readonly end: number } {
  if (!ArrayBuffer.isView(value)) return { start: 0, end: value.byteLength };
  const { byteOffset, byteLength } = value;
  return { start: byteOffset - (byteOffset % 8), end: byteOffset + byteLength };
}

function covers(span: Span, value: Binary): boolean {
  const { start, end } = rangeOf(value);
  return span.start <= start && end <= span.end;
}

/** Returns the same view, onto a copy of its buffer from `start` on. */
function viewOnto(
  copy: ArrayBuffer,
  view: ArrayBufferView<ArrayBuffer>,
  start: number,
): ArrayBufferView<ArrayBuffer> {
  const offset = view.byteOffset - start;
  if (view instanceof Buffer) return Buffer.from(copy, offset, view.byteLength);
  const length = view instanceof DataView ? view.byteLength : (view as Uint8Array).length;
  const View = view.constructor as typeof Uint8Array<ArrayBuffer>;
  return new View(copy, offset, length);
}
