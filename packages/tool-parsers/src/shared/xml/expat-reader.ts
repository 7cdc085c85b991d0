import { PythonError } from "../../../../python-values/src/index.ts";
import {
  readComment,
  readEndTag,
  readInstruction,
  readReference,
  readStartTag,
  skipXmlSpace,
  type XmlToken,
} from "./xml-tokens.ts";

/** The callbacks for the parts of a document. */
export interface XmlHandlers {
  /** An element starts. */
  start(element: string, attributes: ReadonlyMap<string, string>): void;
  end(element: string): void;
  text(data: string): void;
}

// eslint-disable-next-line no-control-regex
const noCharacter = /[\0-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]/g;
/** The most text that is collected for one callback, in bytes. */
const maxCollected = 8192;

/**
 * Reads an XML document in pieces, as Python does with `ParserCreate()` and `buffer_text`. Text is
 * collected until other content follows or the piece ends. After an error every piece except an
 * empty one is refused. After a callback has raised, every piece is refused.
 *
 * **Source:** libexpat/libexpat, `expat/lib/xmlparse.c` and `xmltok_impl.c`; python/cpython,
 * `Modules/pyexpat.c`.
 */
export class ExpatReader {
  #handlers: XmlHandlers | undefined;
  readonly #open: string[] = [];
  #hasRoot = false;
  /** True if there was an error in a piece. */
  #isBroken = false;
  /** True if a callback has raised. */
  #isStopped = false;
  #isInCdata = false;
  /** The text that cannot be read before more text follows. */
  #held = "";
  /** The length of the held text when it was last tried. It is tried again when it is twice as long. */
  #heldBefore = 0;
  #collected: string[] = [];
  #collectedBytes = 0;

  constructor(handlers: XmlHandlers) {
    this.#handlers = handlers;
  }

  /** True if the piece was read without an error. */
  read(piece: string): boolean {
    if (/\p{Surrogate}/u.test(piece)) return false;
    if (this.#isStopped || (this.#isBroken && piece !== "")) return false;
    // An empty piece releases the collected text, even of a broken document.
    if (piece === "") return this.#flush();
    const text = this.#held + piece;
    if (text.length < 2 * this.#heldBefore) {
      this.#held = text;
      return true;
    }
    const end = this.#readAll(text);
    if (end === undefined) {
      this.#isBroken = true;
      return false;
    }
    this.#held = text.slice(end);
    this.#heldBefore = end === 0 ? text.length : 0;
    return this.#flush();
  }

  /** True if the document is complete: one element, and no open content. */
  get isComplete(): boolean {
    const isOpen = this.#open.length > 0 || this.#isInCdata || this.#held !== "";
    return this.#hasRoot && !isOpen && !this.#isBroken && !this.#isStopped;
  }

  /** The start of the incomplete rest; `undefined` if the document is broken. */
  #readAll(text: string): number | undefined {
    noCharacter.lastIndex = 0;
    const limit = noCharacter.exec(text)?.index ?? text.length;
    let position = 0;
    while (position < text.length) {
      const token = this.#readToken(text, position, limit);
      if (token === "invalid" || (token === "partial" && limit < text.length)) return undefined;
      if (token === "partial") return position;
      if (token.end > limit || token.end === position) return undefined;
      position = token.end;
    }
    return position;
  }

  #readToken(text: string, position: number, limit: number): XmlToken {
    if (this.#isInCdata) return this.#readCdata(text, position, limit);
    const isOutside = this.#open.length === 0;
    if (text[position] === "<") return this.#readMarkup(text, position, limit);
    if (isOutside) return { end: skipXmlSpace(text, position) };
    return text[position] === "&"
      ? this.#readReference(text, position)
      : this.#readText(text, position, limit);
  }

  #readText(text: string, position: number, limit: number): XmlToken {
    const stop = /[<&]/g;
    stop.lastIndex = position;
    const run = text.slice(position, Math.min(stop.exec(text)?.index ?? text.length, limit));
    const stray = run.indexOf("]]>");
    if (stray !== -1) {
      // The preceding lines were read before the error.
      this.#collect(/^[^]*[\r\n]/.exec(run.slice(0, stray))?.[0] ?? "");
      return "invalid";
    }
    const isAtEnd = position + run.length === text.length;
    const held = isAtEnd ? (/(?:\]{1,2}|\r)$/.exec(run)?.[0].length ?? 0) : 0;
    if (held === run.length) return run === "" ? "invalid" : "partial";
    this.#collect(run.slice(0, run.length - held));
    return { end: position + run.length - held };
  }

  #readCdata(text: string, position: number, limit: number): XmlToken {
    const close = text.indexOf("]]>", position);
    const run = text.slice(position, Math.min(close === -1 ? text.length : close, limit));
    const held = close === -1 ? (/(?:\]{1,2}|\r)$/.exec(run)?.[0].length ?? 0) : 0;
    this.#collect(run.slice(0, run.length - held));
    const end = position + run.length - held;
    if (close === -1 || close > limit) return end === position ? "partial" : { end };
    this.#isInCdata = false;
    return { end: close + "]]>".length };
  }

  #readReference(text: string, position: number): XmlToken {
    const found = readReference(text, position);
    if (found === undefined) {
      const isCut = /^&(?:#x?[\da-fA-F]*|[-.:\w]*)$/.test(text.slice(position, position + 64));
      return isCut ? "partial" : "invalid";
    }
    this.#collect(found.character, false);
    return found;
  }

  #readMarkup(text: string, position: number, limit: number): XmlToken {
    if (text.startsWith("</", position)) return this.#readEnd(text, position, limit);
    if (text.startsWith("<!--", position)) return readComment(text, position);
    if (text.startsWith("<?", position)) return readInstruction(text, position);
    const cdata = "<![CDATA[";
    if (text.startsWith("<!", position)) {
      if (cdata.startsWith(text.slice(position, position + cdata.length))) {
        if (this.#open.length === 0) return "invalid";
        if (text.length - position < cdata.length) return "partial";
        this.#isInCdata = true;
        return { end: position + cdata.length };
      }
      return text.startsWith("<!-", position) && text.length === position + 3
        ? "partial"
        : "invalid";
    }
    if (this.#open.length === 0 && this.#hasRoot) return "invalid";
    return this.#readStart(text, position, limit);
  }

  #readEnd(text: string, position: number, limit: number): XmlToken {
    const tag = readEndTag(text, position);
    if (typeof tag === "string") return tag;
    if (this.#open.pop() !== tag.element || tag.end > limit) return "invalid";
    this.#report((handlers) => handlers.end(tag.element));
    return tag;
  }

  #readStart(text: string, position: number, limit: number): XmlToken {
    const tag = readStartTag(text, position);
    if (typeof tag === "string") return tag;
    if (tag.end > limit) return "invalid";
    this.#hasRoot = true;
    this.#report((handlers) => handlers.start(tag.element, tag.attributes));
    if (tag.isEmpty) this.#report((handlers) => handlers.end(tag.element));
    else this.#open.push(tag.element);
    return tag;
  }

  #report(call: (handlers: XmlHandlers) => void): void {
    this.#flush();
    this.#call(call);
  }

  #call(call: (handlers: XmlHandlers) => void): void {
    if (this.#handlers === undefined) return;
    try {
      call(this.#handlers);
    } catch (error) {
      if (!(error instanceof PythonError)) throw error;
      this.#handlers = undefined;
      this.#isStopped = true;
    }
  }

  /** Reports the collected text; false if a callback has raised. */
  #flush(): boolean {
    const data = this.#collected.join("");
    this.#collected = [];
    this.#collectedBytes = 0;
    if (data !== "") this.#call((handlers) => handlers.text(data));
    return !this.#isStopped;
  }

  #collect(source: string, hasBreaks = true): void {
    if (this.#handlers === undefined || source === "") return;
    const text = hasBreaks ? source.replaceAll(/\r\n?/g, "\n") : source;
    const bytes = Buffer.byteLength(text);
    if (this.#collectedBytes + bytes <= maxCollected) {
      this.#collected.push(text);
      this.#collectedBytes += bytes;
      return;
    }
    for (const line of text.split(/(\n)/)) if (line !== "") this.#collectLine(line);
  }

  #collectLine(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#collectedBytes + bytes > maxCollected) this.#flush();
    this.#collected.push(line);
    this.#collectedBytes += bytes;
    if (bytes > maxCollected) this.#flush();
  }
}
