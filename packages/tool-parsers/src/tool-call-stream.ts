import { assertInvariant } from "../../python-values/src/support/index.ts";
import { isPythonSpace } from "../../python-values/src/index.ts";
import { holdBackLength } from "./hold-back.ts";
import type { ParseResult, ToolCallStream, ToolStreamEvent } from "./tool-call-parser.ts";

/**
 * The text that a stream may release before the turn ends, because later text cannot change that it
 * is normal text.
 */
export interface ReleaseRule {
  /** The literals that stop the release. All text from the first such literal on is held back. */
  readonly stops: readonly string[];
  /** True if white space around the text may be dropped when a call follows. Default false. */
  readonly strips?: boolean;
  /** True if all text is held back. Default false. */
  readonly holdsAll?: boolean;
  /**
   * True if a malformed call may make the engine move or drop the text before it. A stream cannot take back released
   * text, so its joined output may then differ from that of `parse()`. Default false.
   */
  readonly mayRewrite?: boolean;
  /** A literal. If the text starts with it, the stream holds back the complete text. */
  readonly startStop?: string;
  /**
   * True if line breaks at the end of the text may be dropped when a call follows. Default false.
   */
  readonly dropsBreaks?: boolean;
}

/** The rule of a format that holds all text back until the end of the turn. */
export const holdsAll: ReleaseRule = { stops: [], holdsAll: true };

/**
 * A stream over a parser. It releases text before the first marker as soon as the text cannot be part of a marker, and
 * all other text at the end, so that its joined output equals `parse()` of the complete text, except after a malformed
 * call in a format with `mayRewrite`. The work for a chunk is linear in the chunk.
 */
export class ReleasingStream implements ToolCallStream {
  readonly #rule: ReleaseRule;
  readonly #parse: (text: string) => ParseResult;
  readonly #chunks: string[] = [];
  /** A possible start of a marker. */
  #partial = "";
  /** White space that is dropped if a call follows. */
  #space: string[] = [];
  #releasedLength = 0;
  #isHolding: boolean;
  #isStarted = false;

  constructor(rule: ReleaseRule, parse: (text: string) => ParseResult) {
    this.#rule = rule;
    this.#parse = parse;
    this.#isHolding = rule.holdsAll ?? false;
  }

  push(chunk: string): readonly ToolStreamEvent[] {
    this.#chunks.push(chunk);
    if (this.#isHolding || chunk === "") return [];
    const text = this.#release(this.#partial + chunk);
    this.#releasedLength += text.length;
    return text === "" ? [] : [{ type: "text", text }];
  }

  end(): readonly ToolStreamEvent[] {
    const text = this.#chunks.join("");
    const result = this.#parse(text);
    const { normalText, calls, raises } = result.compat;
    const events: ToolStreamEvent[] = [];
    const rest = raises ? "" : this.#rest(normalText, text.slice(0, this.#releasedLength));
    if (rest !== "") events.push({ type: "text", text: rest });
    calls.forEach((call, index) => events.push({ type: "tool-call", index, call }));
    return [...events, { type: "end", result }];
  }

  #rest(normalText: string, released: string): string {
    if (normalText.startsWith(released)) return normalText.slice(released.length);
    const mayRewrite = this.#rule.mayRewrite === true;
    assertInvariant(mayRewrite, "A stream has released text that is no normal text");
    return normalText.replace(released, () => "");
  }

  /** The part of the text that can be released. The text follows the released and the kept text. */
  #release(text: string): string {
    const { stops, strips = false, dropsBreaks = false } = this.#rule;
    if (!this.#isStarted && this.#holdsStart(text)) return "";
    this.#isStarted = true;
    const places = stops.map((stop) => text.indexOf(stop)).filter((place) => place !== -1);
    const stop = places.length === 0 ? undefined : Math.min(...places);
    this.#isHolding = stop !== undefined;
    const usable = text.slice(0, stop ?? text.length - holdBackLength(text, stops));
    this.#partial = stop === undefined ? text.slice(usable.length) : "";
    return strips || dropsBreaks ? this.#holdSpace(usable) : usable;
  }

  /** True if no part of a text with this start may be released, or if it is still unknown whether one may. */
  #holdsStart(text: string): boolean {
    const { startStop, strips } = this.#rule;
    const startsWithSpace = strips === true && isPythonSpace(text.charCodeAt(0));
    this.#isHolding = startsWithSpace || (startStop !== undefined && text.startsWith(startStop));
    if (this.#isHolding) return true;
    if (startStop?.startsWith(text) !== true) return false;
    this.#partial = text;
    return true;
  }

  /** Holds back white space at the end of a text. Prepends white space that was held back earlier. */
  #holdSpace(text: string): string {
    let end = text.length;
    while (end > 0 && this.#isDropped(text.charCodeAt(end - 1))) end -= 1;
    if (end === 0) {
      this.#space.push(text);
      return "";
    }
    const released = this.#space.join("") + text.slice(0, end);
    this.#space = [text.slice(end)];
    return released;
  }

  #isDropped(unit: number): boolean {
    return this.#rule.strips === true ? isPythonSpace(unit) : unit === 0x0a;
  }
}
