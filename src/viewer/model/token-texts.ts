import type { RowColumns } from "./row-columns.ts";
import { columnsOf, tokenText } from "./visible-text.ts";

/** Maximum length of a token's text in the strip. The token's own panel shows the complete text. */
const maxShownLength = 64;

/** Maximum number of consecutive ids that are joined to spell one character. */
const maxJoined = 16;

/** The text of an id that continues the character of the id before it. */
const continued = "·";

/** The texts of a row's ids, singly and in sequence. */
export class TokenTexts {
  /** False if the tokenizer is not available. Ids are then shown instead of texts. */
  readonly hasText: boolean;
  readonly #ids: Int32Array;
  readonly #texts = new Map<number, string>();
  readonly #shown = new Map<number, string>();
  readonly #special = new Set<number>();
  readonly #widths: Uint8Array;
  readonly #endsLine: Uint8Array;
  /** Texts of ids that together spell a character, by their index in the row. */
  readonly #joined = new Map<number, string>();

  constructor({ header, ids }: Pick<RowColumns, "header" | "ids">) {
    this.#ids = ids;
    this.hasText = header.pieces !== undefined;
    let largest = 0;
    for (const id of ids) if (id > largest) largest = id;
    this.#widths = new Uint8Array(largest + 1);
    this.#endsLine = new Uint8Array(largest + 1);
    const partial = new Map<number, Uint8Array>();
    for (const [id, text, form] of header.pieces ?? []) {
      if (form === "bytes") partial.set(id, fromHex(text));
      else this.#texts.set(id, text);
      if (form === "special") this.#special.add(id);
    }
    if (partial.size > 0) this.#join(partial);
  }

  /** Returns the text that the token adds. If several ids spell one character, the first has it. */
  textAt(index: number): string {
    return this.#joined.get(index) ?? this.#texts.get(this.#ids[index]!) ?? "";
  }

  /** Returns the text in the strip: on one line, and never empty. */
  shownAt(index: number): string {
    const joined = this.#joined.get(index);
    if (joined !== undefined) return joined === "" ? continued : shorten(tokenText(joined));
    return this.#shownOf(this.#ids[index]!);
  }

  /** Returns the number of columns of `shownAt()`, including the gap after an id. */
  widthAt(index: number): number {
    const joined = this.#joined.get(index);
    if (joined !== undefined) return joined === "" ? 1 : columnsOf(shorten(tokenText(joined)));
    const id = this.#ids[index]!;
    const known = this.#widths[id]!;
    if (known > 0) return known;
    const shown = this.#shownOf(id);
    this.#endsLine[id] = Number(this.#texts.get(id)?.includes("\n") === true);
    return (this.#widths[id] = columnsOf(shown) + (this.hasText ? 0 : 1));
  }

  /** True if a line of the strip ends after the token. Call it after `widthAt()`. */
  endsLineAt(index: number): boolean {
    return this.#endsLine[this.#ids[index]!] === 1;
  }

  /** Returns the text for an id that does not occur in the row. */
  shownOfId(id: number): string {
    return this.#shownOf(id);
  }

  isSpecialAt(index: number): boolean {
    return this.#special.has(this.#ids[index]!);
  }

  /** Returns the text of consecutive ids, or the ids themselves without a tokenizer. */
  slice(start: number, end: number): string {
    const parts: string[] = [];
    for (let index = start; index < end; index++) {
      parts.push(this.hasText ? this.textAt(index) : String(this.#ids[index]));
    }
    return parts.join(this.hasText ? "" : " ");
  }

  #shownOf(id: number): string {
    let shown = this.#shown.get(id);
    if (shown === undefined) {
      const text = this.#texts.get(id);
      shown = text === undefined ? String(id) : shorten(tokenText(text)) || "∅";
      this.#shown.set(id, shown);
    }
    return shown;
  }

  #join(partial: ReadonlyMap<number, Uint8Array>): void {
    const ids = this.#ids;
    for (let start = 0; start < ids.length; start++) {
      if (!partial.has(ids[start]!)) continue;
      let end = start;
      const bytes: number[] = [];
      while (end < ids.length && partial.has(ids[end]!)) {
        // A new character begins here. The bytes before it form a complete character, or are
        // invalid.
        if (end - start >= maxJoined || (end > start && isWhole(bytes))) break;
        bytes.push(...partial.get(ids[end]!)!);
        end++;
      }
      this.#joined.set(start, new TextDecoder().decode(Uint8Array.from(bytes)));
      for (let index = start + 1; index < end; index++) this.#joined.set(index, "");
      start = end - 1;
    }
  }
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

function isWhole(bytes: readonly number[]): boolean {
  try {
    strictDecoder.decode(Uint8Array.from(bytes));
    return true;
  } catch {
    return false;
  }
}

function shorten(text: string): string {
  return text.length <= maxShownLength ? text : `${text.slice(0, maxShownLength - 1)}…`;
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}
