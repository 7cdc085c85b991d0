import type { JsonPart, NumberStretch, RepeatedItem } from "../../json/json-pieces.ts";
import { spellPart } from "../../json/json-pieces.ts";
import { mostBytesPerUnit, utf8Bytes } from "../../text/utf8-bytes.ts";
import { idSlack, mostBytesPerId, writeIds } from "../../json/write-ids.ts";

/** The approximate size of a block in bytes. */
const blockSize = 32 * 1024;

/** A buffer for text before its encoded length is known. The content is copied before other work can run. */
const scratch = Buffer.allocUnsafeSlow(8 * blockSize);
const scratchView = new DataView(scratch.buffer, scratch.byteOffset, scratch.byteLength);

/** Collects the parts of a JSON text as blocks of UTF-8. Numbers are written without an intermediate string. */
export class LineBytes {
  readonly #onBlock: (block: Uint8Array) => void;
  readonly #allocate: (size: number) => Buffer;
  #end = 0;

  /**
   * @param onBlock - Called with each complete block of about 32 KiB.
   * @param allocate - Allocates a block. Default: Node's own allocation.
   */
  constructor(
    onBlock: (block: Uint8Array) => void,
    allocate: (size: number) => Buffer = (size) => Buffer.allocUnsafeSlow(size),
  ) {
    this.#onBlock = onBlock;
    this.#allocate = allocate;
  }

  /** True if the collected bytes fill a block. */
  get isBlockFull(): boolean {
    return this.#end >= blockSize;
  }

  add(part: JsonPart): void {
    if (typeof part === "string") this.#addText(part);
    else if (part.type === "repeated") this.#addRepeated(part);
    else this.#addNumbers(part);
  }

  /** Passes on the collected bytes. Call it before other work can run. */
  flush(): void {
    if (this.#end === 0) return;
    const block = this.#allocate(this.#end);
    scratch.copy(block, 0, 0, this.#end);
    this.#onBlock(block);
    this.#end = 0;
  }

  #addText(text: string): void {
    if (this.#makeRoom(text.length * mostBytesPerUnit)) this.#end += scratch.write(text, this.#end);
    else this.#onBlock(utf8Bytes(text, this.#allocate));
  }

  #addRepeated(part: RepeatedItem): void {
    const { count, text } = part;
    const size = Buffer.byteLength(text) + 1;
    if (!this.#makeRoom(size * count)) {
      this.#addText(spellPart(part));
      return;
    }
    const start = this.#end;
    const end = start + size * count;
    scratch.write(`${text},`, start);
    for (let written = start + size; written < end; written += written - start) {
      scratch.copyWithin(written, start, Math.min(written, start + end - written));
    }
    this.#end = end - 1;
  }

  #addNumbers(part: NumberStretch): void {
    const { first, last, list } = part;
    // Fractions are not tried as ids: with mixed lists, the ids of every prompt would be slower.
    const mayBeIds =
      Number.isInteger(list[first]) && this.#makeRoom((last - first) * mostBytesPerId + idSlack);
    const end = mayBeIds ? writeIds(scratchView, this.#end, list, { first, last }) : -1;
    if (end === -1) this.#addText(spellPart(part));
    else this.#end = end;
  }

  /** True if `size` bytes fit into the buffer. Flushes it if necessary. */
  #makeRoom(size: number): boolean {
    if (this.#end + size > scratch.length) this.flush();
    return size <= scratch.length;
  }
}
