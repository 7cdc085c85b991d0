import { holdBackLength } from "../../hold-back.ts";
import { AnchorSearch, type AnchorMatch } from "./anchor.ts";
import type { TemplateField } from "./response-template.ts";

/** A part of the text that is read as one field. */
export interface Region {
  readonly field: TemplateField;
  /** The start of the opening marker, or of the body if there is no opening. */
  readonly start: number;
  readonly bodyStart: number;
  readonly body: string;
  /** The start of the closing marker. The end of the text if the region is cut off. */
  readonly closeStart: number;
  /** The end of the closing marker. The end of the text if the region is cut off. */
  readonly end: number;
  readonly captures: ReadonlyMap<string, string>;
}

/** A text and its regions. */
export interface Walk {
  /** The text. If the text stopped within its last closing marker, the missing part of the marker is added. */
  readonly text: string;
  readonly regions: readonly Region[];
}

/** The fields that a walk searches for. */
interface WalkFields {
  /** The fields. At most one has no opening: it gets the text outside all others. */
  readonly fields: readonly TemplateField[];
  /** The texts at the end of the prompt for a turn. */
  readonly startLiterals: readonly string[];
}

/**
 * Splits a text into the regions of a template's fields, as the interpreter in SGLang and vLLM
 * does. A closing may end with the literals that start the next turn. If the text stops within these
 * literals, the missing rest is added.
 *
 * **Source:** huggingface/transformers, `src/transformers/utils/chat_parsing/response_parser.py`,
 * and sgl-project/sglang 0.5.23, `python/sglang/srt/parser/response_template.py`.
 */
export function walkRegions(text: string, wanted: WalkFields): Walk {
  const walker = new Walker(text, wanted);
  walker.process(false);
  const rest = walker.openClosingRest();
  if (rest !== "") {
    walker.extend(rest);
    walker.process(false);
  }
  walker.process(true);
  return { text: walker.text, regions: walker.regions };
}

interface Candidate {
  readonly kind: "open" | "close";
  readonly field: TemplateField;
  readonly match: AnchorMatch;
}

class Walker {
  readonly regions: Region[] = [];
  readonly #wanted: WalkFields;
  readonly #sink: TemplateField | undefined;
  #text: string;
  #searches = new Map<string, AnchorSearch>();
  #place = 0;
  #current: TemplateField | undefined;
  #isOpen = false;
  #start = 0;
  #bodyStart = 0;
  #body: string[] = [];
  #captures: ReadonlyMap<string, string> = new Map();

  constructor(text: string, wanted: WalkFields) {
    this.#text = text;
    this.#wanted = wanted;
    this.#sink = wanted.fields.find(({ open }) => open === undefined);
    this.#current = this.#sink;
  }

  get text(): string {
    return this.#text;
  }

  extend(text: string): void {
    this.#text += text;
    this.#searches = new Map();
  }

  /** Returns the missing part of a closing marker within which the text stopped. */
  openClosingRest(): string {
    if (!this.#isOpen || this.#current === undefined) return "";
    const body = this.#text.slice(this.#bodyStart);
    for (const closer of this.#current.close?.literals ?? []) {
      for (const start of this.#wanted.startLiterals) {
        if (start === "" || closer === start || !closer.endsWith(start)) continue;
        for (let cut = closer.length - 1; cut >= closer.length - start.length; cut--) {
          if (body.endsWith(closer.slice(0, cut))) return closer.slice(cut);
        }
      }
    }
    return "";
  }

  /**
   * Processes the text.
   *
   * @param isOver - True if no further text arrives, so that no match can grow.
   */
  process(isOver: boolean): void {
    for (;;) {
      const { best, holdStart } = this.#scan(isOver);
      if (best === undefined) {
        this.#take(holdStart);
        if (isOver) this.#close(this.#text.length, this.#text.length);
        return;
      }
      const { kind, field, match } = best;
      this.#take(match.start);
      this.#place = match.end;
      const hadContent = this.#isOpen;
      if (kind === "open") {
        this.#close(match.start, match.start);
        this.#openRegion(field, match);
      } else {
        this.#close(match.start, match.end);
        if (!hadContent && match.start === match.end) return;
      }
    }
  }

  #watched(): readonly Pick<Candidate, "kind" | "field">[] {
    const close = { kind: "close", field: this.#current as TemplateField } as const;
    const closes = this.#current?.close === undefined ? [] : [close];
    if (this.#current !== this.#sink) return closes;
    const opens = this.#wanted.fields.filter(({ open }) => open !== undefined);
    return [...opens.map((field) => ({ kind: "open", field }) as const), ...closes];
  }

  #scan(isOver: boolean): { readonly best: Candidate | undefined; readonly holdStart: number } {
    let best: Candidate | undefined;
    let holdStart = this.#text.length;
    for (const { kind, field } of this.#watched()) {
      const match = this.#searchOf(kind, field).from(this.#place);
      const anchor = kind === "open" ? field.open : field.close;
      if (match === undefined) {
        if (isOver || anchor?.literals === undefined) continue;
        const longest = Math.max(...anchor.literals.map(({ length }) => length));
        const rest = this.#text.slice(Math.max(this.#place, this.#text.length - longest));
        holdStart = Math.min(holdStart, this.#text.length - holdBackLength(rest, anchor.literals));
        continue;
      }
      const isAtEdge = match.end === this.#text.length;
      if (!isOver && isAtEdge && (match.start === match.end || anchor?.canGrow === true)) {
        holdStart = Math.min(holdStart, match.start);
        continue;
      }
      const candidate = { kind, field, match };
      if (best === undefined || comesBefore(candidate, best)) best = candidate;
    }
    const isHeld = best !== undefined && best.match.start >= holdStart;
    return { best: isHeld ? undefined : best, holdStart };
  }

  #searchOf(kind: "open" | "close", field: TemplateField): AnchorSearch {
    const key = `${kind} ${field.name}`;
    const known = this.#searches.get(key);
    if (known !== undefined) return known;
    const anchor = kind === "open" ? field.open : field.close;
    if (anchor === undefined) throw new TypeError("A field without an anchor cannot be searched");
    const search = new AnchorSearch(anchor, this.#text);
    this.#searches.set(key, search);
    return search;
  }

  /** Assigns the text up to a place to the current region. */
  #take(end: number): void {
    if (end > this.#place && this.#current !== undefined) {
      if (!this.#isOpen) {
        this.#isOpen = true;
        this.#start = this.#place;
        this.#bodyStart = this.#place;
      }
      this.#body.push(this.#text.slice(this.#place, end));
    }
    this.#place = Math.max(this.#place, end);
  }

  #openRegion(field: TemplateField, { start, end, captures }: AnchorMatch): void {
    this.#current = field;
    this.#isOpen = true;
    this.#start = start;
    this.#bodyStart = end;
    this.#captures = captures;
  }

  #close(closeStart: number, end: number): void {
    if (this.#current !== undefined && this.#isOpen) {
      this.regions.push({
        field: this.#current,
        start: this.#start,
        bodyStart: this.#bodyStart,
        body: this.#body.join(""),
        closeStart,
        end,
        captures: this.#captures,
      });
    }
    this.#current = this.#sink;
    this.#isOpen = false;
    this.#body = [];
    this.#captures = new Map();
  }
}

/**
 * Orders candidates: the earlier one first, then the longer one, then the one that opens a region,
 * then the field that the template names first.
 */
function comesBefore(left: Candidate, right: Candidate): boolean {
  const key = ({ kind, match }: Candidate): readonly number[] => [
    match.start,
    match.start - match.end,
    kind === "open" ? 0 : 1,
  ];
  const [leftKey, rightKey] = [key(left), key(right)];
  const place = leftKey.findIndex((each, index) => each !== rightKey[index]);
  if (place === -1) return left.field.name < right.field.name;
  return (leftKey[place] as number) < (rightKey[place] as number);
}
