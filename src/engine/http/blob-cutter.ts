import { assertInvariant } from "../../errors.ts";

/** Takes the text of a long member of a reply as it arrives. */
export interface BlobReader {
  /**
   * Takes the next bytes between the member's quotes.
   *
   * @throws ReplyProblem if the bytes are not valid.
   */
  add(text: Buffer): void;
  /**
   * Takes the end.
   *
   * @throws ReplyProblem if bytes are missing.
   */
  end(): void;
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/**
 * Cuts long texts out of a reply's JSON while it arrives, so that text decoding, the redactor and `JSON.parse` never see
 * them. Each text is replaced by its number, as a text: `"routed_experts":"0"`.
 *
 * A member is found by its quoted name. In JSON, these bytes are a string of their own unless a backslash precedes
 * them: a string that contains them has its quotes escaped.
 */
export class BlobCutter<Reader extends BlobReader> {
  readonly #members: readonly { readonly needle: Buffer; readonly open: () => Reader }[];
  readonly #readers: Reader[] = [];
  /** The open text, or `undefined` between texts. */
  #reader: Reader | undefined;
  /** Bytes that may be the start of a member's name. */
  #held: Buffer = Buffer.alloc(0);
  #byteBefore = 0;

  /** @param members - Creates a reader for a text, by the member's name. */
  constructor(members: Readonly<Record<string, () => Reader>>) {
    this.#members = Object.entries(members).map(([name, open]) => ({
      needle: Buffer.from(JSON.stringify(name)),
      open,
    }));
  }

  /**
   * Takes the next bytes of the reply, and returns the bytes without the texts.
   *
   * @throws errors of readers.
   */
  take(chunk: Buffer): readonly Buffer[] {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const rest: Buffer[] = [];
    const keep = (from: number, to: number): void => {
      if (to > from) rest.push(bytes.subarray(from, to));
    };
    let place = 0;
    this.#held = Buffer.alloc(0);
    while (place < bytes.length) {
      if (this.#reader !== undefined) {
        const end = bytes.indexOf(quote, place);
        const to = end < 0 ? bytes.length : end;
        if (to > place) this.#reader.add(bytes.subarray(place, to));
        if (end >= 0) {
          this.#reader.end();
          this.#reader = undefined;
        }
        place = to;
        // The closing quote belongs to the rest.
        if (end >= 0) {
          keep(place, place + 1);
          place += 1;
        }
        continue;
      }
      const found = this.#find(bytes, place);
      if (found.type === "text") {
        keep(place, found.at);
        rest.push(Buffer.from(String(this.#readers.length)));
        this.#reader = found.open();
        this.#readers.push(this.#reader);
        place = found.at;
        continue;
      }
      keep(place, found.at);
      this.#held = bytes.subarray(found.at);
      break;
    }
    const last = bytes.length - this.#held.length - 1;
    if (last >= 0) this.#byteBefore = bytes[last]!;
    return rest;
  }

  /** Returns the bytes that were held, because they could have been a member's name. */
  end(): Buffer {
    return this.#held;
  }

  /** Returns the reader of a text, given the number in its place. Returns `undefined` if the member is not a text. */
  readerOf(placeholder: unknown): Reader | undefined {
    if (typeof placeholder !== "string") return undefined;
    const reader = this.#readers[Number(placeholder)];
    assertInvariant(reader !== undefined, "each text was replaced by its number");
    return reader;
  }

  /**
   * Finds the next text from a position on. `end`: there is no text before `at`, and the bytes from there may be the
   * start of one.
   */
  #find(
    bytes: Buffer,
    from: number,
  ):
    | { readonly type: "text"; readonly at: number; readonly open: () => Reader }
    | { readonly type: "end"; readonly at: number } {
    let first: { at: number; open: () => Reader } | undefined;
    let heldFrom = bytes.length;
    for (const { needle, open } of this.#members) {
      for (let at = from; ; at++) {
        at = bytes.indexOf(needle, at);
        if (at < 0) break;
        if ((at === 0 ? this.#byteBefore : bytes[at - 1]) === backslash) continue;
        const opening = findOpening(bytes, at + needle.length);
        if (opening === "none") continue;
        if (opening === "unknown") heldFrom = Math.min(heldFrom, at);
        else if (first === undefined || opening < first.at) first = { at: opening, open };
        break;
      }
      heldFrom = Math.min(heldFrom, findStart(bytes, needle, from));
    }
    // Bytes after an opening quote belong to the text.
    if (first !== undefined) return { type: "text", ...first };
    return { type: "end", at: heldFrom };
  }
}

/** Returns the place after the opening quote of a member's text, given the place after the member's name. */
function findOpening(bytes: Buffer, from: number): number | "none" | "unknown" {
  let place = from;
  for (const expected of [colon, quote]) {
    while (isSpace(bytes[place])) place++;
    if (place >= bytes.length) return "unknown";
    if (bytes[place] !== expected) return "none";
    place++;
  }
  return place;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Returns the place of a name's first bytes at the end of the bytes, or the bytes' length. */
function findStart(bytes: Buffer, needle: Buffer, from: number): number {
  const earliest = Math.max(from, bytes.length - needle.length + 1);
  for (let place = earliest; place < bytes.length; place++) {
    const isStart =
      bytes[place] === quote &&
      bytes.compare(needle, 0, bytes.length - place, place, bytes.length) === 0;
    if (isStart) return place;
  }
  return bytes.length;
}
