import { Buffer } from "node:buffer";

/** Binary data: whoever has it can write it, and nobody is told. */
export type Binary = ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** What all typed arrays have in common. */
const anyTypedArray: unknown = Object.getPrototypeOf(Uint8Array.prototype);

/** Whether it is an `ArrayBuffer` or a view of one, and of no class of its author's. */
export function isBinary(value: unknown): value is Binary {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!ArrayBuffer.isView(value)) return prototype === ArrayBuffer.prototype;
  // What is in shared memory is there to be shared.
  if (!(value.buffer instanceof ArrayBuffer)) return false;
  const isOwn = prototype === DataView.prototype || prototype === Buffer.prototype;
  return isOwn || Object.getPrototypeOf(prototype) === anyTypedArray;
}

/** What tells binary data of one class apart, as a text that is no JSON; nothing for any other value. */
export function binaryText(value: unknown): string | undefined {
  if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) return undefined;
  const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(value)
    ? value
    : { buffer: value, byteOffset: 0, byteLength: value.byteLength };
  const bytes = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
  // A Buffer is an array of bytes as any other.
  return `${Object.prototype.toString.call(value)}(${bytes})`;
}

/** Where the bytes are, which other views may show as well. */
export function bufferOf(value: Binary): ArrayBuffer {
  return ArrayBuffer.isView(value) ? value.buffer : value;
}

/** What is copied of a buffer. */
interface Span {
  start: number;
  end: number;
  copy: ArrayBuffer | undefined;
}

/**
 * Copies of binary data. Views that share a buffer share one copy of the range that they span, and of no more: a
 * Buffer of Node's may lie in a pool with others.
 */
export class BinaryCopies {
  readonly #spans = new Map<ArrayBuffer, Span>();

  /** Takes note of what is going to be copied: all of it, before the first is. */
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

  /** How many bytes the copies of what was noted take. */
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

/** Begins where a number of any size may. */
function rangeOf(value: Binary): { readonly start: number; readonly end: number } {
  if (!ArrayBuffer.isView(value)) return { start: 0, end: value.byteLength };
  const { byteOffset, byteLength } = value;
  return { start: byteOffset - (byteOffset % 8), end: byteOffset + byteLength };
}

function covers(span: Span, value: Binary): boolean {
  const { start, end } = rangeOf(value);
  return span.start <= start && end <= span.end;
}

/** The same view of a copy of its buffer from `start` on. */
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
