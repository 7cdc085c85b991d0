import type { JsonPart, NumberStretch, RepeatedItem } from "../../json/json-pieces.ts";
import { spellPart } from "../../json/json-pieces.ts";
import { mostBytesPerUnit, utf8Bytes } from "../../text/utf8-bytes.ts";
import { idSlack, mostBytesPerId, writeIds } from "../../json/write-ids.ts";

/** Bytes of a block, nearly. */
const blockSize = 32 * 1024;

/** Where bytes are written before it is known how many they are; whoever gives up his turn has taken his. */
const desk = Buffer.allocUnsafeSlow(8 * blockSize);
const deskView = new DataView(desk.buffer, desk.byteOffset, desk.byteLength);

/** Gathers the parts of a JSON text as blocks of bytes. Numbers are written where they go, without a text. */
export class LineBytes {
  readonly #onBlock: (block: Uint8Array) => void;
  readonly #allocate: (size: number) => Buffer;
  #end = 0;

  /**
   * @param onBlock - Is given each block, some 32 KiB in UTF-8, once it is whole.
   * @param allocate - Gives the room for a block. Default: Node's own, as it is.
   */
  constructor(
    onBlock: (block: Uint8Array) => void,
    allocate: (size: number) => Buffer = (size) => Buffer.allocUnsafeSlow(size),
  ) {
    this.#onBlock = onBlock;
    this.#allocate = allocate;
  }

  /** Whether there is a block's worth that has not been handed on. */
  get isBlockFull(): boolean {
    return this.#end >= blockSize;
  }

  add(part: JsonPart): void {
    if (typeof part === "string") this.#addText(part);
    else if (part.type === "repeated") this.#addRepeated(part);
    else this.#addNumbers(part);
  }

  /** Hands on what was gathered: to be called before anybody else has his turn. */
  flush(): void {
    if (this.#end === 0) return;
    const block = this.#allocate(this.#end);
    desk.copy(block, 0, 0, this.#end);
    this.#onBlock(block);
    this.#end = 0;
  }

  #addText(text: string): void {
    if (this.#makeRoom(text.length * mostBytesPerUnit)) this.#end += desk.write(text, this.#end);
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
    desk.write(`${text},`, start);
    for (let written = start + size; written < end; written += written - start) {
      desk.copyWithin(written, start, Math.min(written, start + end - written));
    }
    this.#end = end - 1;
  }

  #addNumbers(part: NumberStretch): void {
    const { first, last, list } = part;
    // Fractions are not tried as ids: reading lists of both kinds costs the ids of every prompt more.
    const mayBeIds =
      Number.isInteger(list[first]) && this.#makeRoom((last - first) * mostBytesPerId + idSlack);
    const end = mayBeIds ? writeIds(deskView, this.#end, list, { first, last }) : -1;
    if (end === -1) this.#addText(spellPart(part));
    else this.#end = end;
  }

  /** Whether so many bytes fit on the desk, cleared if need be. */
  #makeRoom(size: number): boolean {
    if (this.#end + size > desk.length) this.flush();
    return size <= desk.length;
  }
}
