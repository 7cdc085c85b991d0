import type { EngineReading } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { Step3p5Calls } from "./step3p5-calls.ts";
import { escapeXml, repairStep3p5Tags, writeStep3p5Tags } from "./step3p5-markup.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";

const callOpen = "<tool_call>";
const callClose = "</tool_call>";
const functionOpen = "<function=";
const functionClose = "</function>";
const parameterOpen = "<parameter=";
const parameterClose = "</parameter>";

const stops = [callOpen, functionOpen, parameterOpen];
/** Matches the start of a piece that is passed on as markup. */
const markup =
  /^(?:<\/?tool_call>|<\/(?:function|parameter)>|<function(?:[= a-zA-Z_])|<parameter=)/;
const containerTypes = /^(?:(?:array|arr|sequence)$|dict|list)/;

/**
 * Finds the next position of a string. Positions must be requested in ascending order, and each part of the text is
 * searched once.
 */
class Finder {
  readonly #text: string;
  readonly #sought: string;
  #found = -2;

  constructor(text: string, sought: string) {
    this.#text = text;
    this.#sought = sought;
  }

  /** The first place at or after `position`, or -1. */
  from(position: number): number {
    if (this.#found !== -1 && this.#found < position) {
      this.#found = this.#text.indexOf(this.#sought, position);
    }
    return this.#found;
  }
}

/** Reads a text piece by piece, and writes each piece as an XML fragment. */
class Step3p5Walk {
  readonly #text: string;
  readonly #context: ParseContext;
  readonly #calls: Step3p5Calls;
  readonly #less: Finder;
  readonly #greater: Finder;
  readonly #lineBreak: Finder;
  readonly #functionClose: Finder;
  readonly #parameterClose: Finder;
  /** The pieces so far of a parameter's value that is parsed at its end; `undefined` for other values. */
  #kept: string[] | undefined;
  /** The name of the parameter that `#kept` has pieces of. */
  #keptName: string | undefined;

  constructor(text: string, context: ParseContext) {
    this.#text = text;
    this.#context = context;
    this.#calls = new Step3p5Calls(context, () => {
      this.#kept = undefined;
      this.#keptName = undefined;
    });
    this.#less = new Finder(text, "<");
    this.#greater = new Finder(text, ">");
    this.#lineBreak = new Finder(text, "\n");
    this.#functionClose = new Finder(text, functionClose);
    this.#parameterClose = new Finder(text, parameterClose);
  }

  /**
   * Reads the complete text.
   *
   * @throws PythonError if the engine raises, which it does after a broken call at the start.
   */
  read(): VllmExtraction {
    const calls = this.#calls;
    const hasRead = this.#readPieces();
    if (!hasRead && calls.outerText.length > 0 && calls.count === 0) {
      return { content: calls.outerText.join(""), calls: [] };
    }
    const isLone = calls.isInCall && calls.count === 1;
    if (hasRead) {
      if (isLone) catchPython(() => this.#completeRead());
    } else if (!isLone || !this.#hasClose()) return { content: "", calls: [] };
    else this.#completeUnread();
    return { content: calls.content, calls: calls.calls };
  }

  #hasClose(): boolean {
    return this.#text.includes(functionClose) || this.#text.includes(callClose);
  }

  /** Ends the only call if its closing tags are present but were not read. */
  #completeRead(): void {
    const calls = this.#calls;
    // The tags belong to the call that was open after the last piece, even if it has ended since.
    const { isBounded } = calls;
    if (this.#text.includes(functionClose) && !calls.isClosed) calls.endFunction();
    if (!this.#text.includes(callClose) || isBounded) return;
    calls.endFunction();
    calls.end("tool_call");
  }

  #completeUnread(): void {
    const calls = this.#calls;
    if (this.#text.includes(functionClose)) calls.endFunction();
    else calls.end("parameter");
    if (this.#text.includes(callClose)) calls.end("tool_call");
  }

  /** True if any piece was read without an error. */
  #readPieces(): boolean {
    let hasRead = false;
    let position = 0;
    while (position < this.#text.length) {
      const end = this.#findEnd(position);
      if (end === undefined) break;
      const piece = this.#text.slice(position, end);
      position = end;
      if (!this.#calls.isInCall && !stops.some((stop) => piece.startsWith(stop))) {
        this.#calls.outerText.push(piece);
      } else if (catchPython(() => this.#readPiece(piece)) === true) hasRead = true;
    }
    return hasRead;
  }

  /** The end of the piece that starts here; `undefined` if the engine waits for more text. */
  #findEnd(position: number): number | undefined {
    const text = this.#text;
    if (text[position] !== "<") {
      const next = this.#less.from(position);
      return next === -1 ? text.length : next;
    }
    const broken = this.#findBrokenEnd(position);
    if (broken !== undefined) return broken;
    const less = this.#less.from(position + 1);
    const greater = this.#greater.from(position + 1);
    if (less !== -1 && (greater === -1 || less < greater)) return less;
    if (greater !== -1) return greater + 1;
    if (this.#calls.isInCall) return undefined;
    const rest = text.slice(position);
    const waits =
      rest.startsWith(functionOpen) || callOpen.startsWith(rest) || functionOpen.startsWith(rest);
    return waits ? undefined : text.length;
  }

  /** The end of an element, if its first tag is not closed on its line. */
  #findBrokenEnd(position: number): number | undefined {
    const isParameter = this.#text.startsWith(parameterOpen, position);
    if (!isParameter && !this.#text.startsWith(functionOpen, position)) return undefined;
    const greater = this.#greater.from(position);
    const lineBreak = this.#lineBreak.from(position);
    if (greater !== -1 && (lineBreak === -1 || greater < lineBreak)) return undefined;
    const close = (isParameter ? this.#parameterClose : this.#functionClose).from(position);
    if (close === -1) return undefined;
    return close + (isParameter ? parameterClose : functionClose).length;
  }

  #readPiece(piece: string): boolean {
    const calls = this.#calls;
    const fragment = this.#prepare(piece);
    const isCall = fragment.startsWith(callOpen);
    const isFirst = calls.count === 0;
    if (isFirst && (isCall || fragment.startsWith("<function name="))) calls.releaseText();
    if (isCall && !isFirst && calls.isInCall && calls.functionName !== undefined) {
      calls.completeCall();
    }
    return calls.document.read(fragment);
  }

  /** Writes the piece as XML. */
  #prepare(source: string): string {
    const calls = this.#calls;
    const piece =
      calls.isInCall || source.startsWith("<function") || source.startsWith("<parameter")
        ? repairStep3p5Tags(source, calls.functionName, this.#context)
        : source;
    const written = writeStep3p5Tags(piece);
    if (this.#kept !== undefined) return this.#keep(this.#kept, piece, written);
    if (written.startsWith("<parameter name=")) {
      this.#keptName = /^<parameter name="([^"]+)">/.exec(written)?.[1] ?? this.#keptName;
      this.#kept = [];
      return written;
    }
    return markup.test(source) ? written : escapeXml(written);
  }

  /**
   * Collects the pieces of a parameter's value if the complete value must be parsed at its end, as for a list. Returns
   * the text to write now: nothing while pieces are collected. Pieces of other values are written immediately.
   */
  #keep(kept: string[], piece: string, written: string): string {
    if (written.startsWith(parameterClose)) {
      const literal = kept.join("");
      this.#calls.literal = literal;
      this.#kept = undefined;
      this.#keptName = undefined;
      return `${escapeXml(literal)}${parameterClose}`;
    }
    if (kept.length === 0 && !this.#isLiteral(piece)) {
      this.#kept = undefined;
      return escapeXml(piece);
    }
    kept.push(piece);
    return "";
  }

  #isLiteral(piece: string): boolean {
    const type = this.#keptName === undefined ? "string" : this.#calls.typeOf(this.#keptName);
    if (containerTypes.test(type)) return true;
    return type === "object" && /[[{(]/.test(piece) && piece.includes("'");
  }
}

/**
 * vLLM's parser for Step-3.5. It rewrites the text as XML, passes it to an XML parser piece by
 * piece, and writes the arguments as the events arrive. A call that is cut off has incomplete
 * arguments, and markup that is not XML ends the reading of its call.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/step3p5_tool_parser.py`.
 */
export const vllmStep3p5: EngineReading = vllmReading({
  release: { stops, mayRewrite: true },
  extract: (text, context) => new Step3p5Walk(text, context).read(),
});
