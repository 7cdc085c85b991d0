import { JsonEnd } from "./json-end.ts";
import { rustSpace } from "../../shared/text/rust-space.ts";

/** A call as the model wrote it. No part of it is read as JSON. */
export interface CohereCall {
  readonly name: string;
  /** The text of the parameters. Empty if the call has none. */
  readonly argumentsText: string;
}

interface OpenCall {
  name: string;
  argumentsText: string;
}

type Place = "outside" | "id" | "after-id" | "name" | "after-name" | "parameters";

const idStart = new RegExp(`"tool_call(?:_id)?":${rustSpace}*"`, "g");
const nameStart = new RegExp(`"tool_name":${rustSpace}*"`, "g");
const parametersStart = new RegExp(`"parameters":${rustSpace}*`, "g");
const filledParameters = new RegExp(`"parameters":${rustSpace}*\\{${rustSpace}*"`, "g");
const lineParts = new RegExp(`(\n)|(${rustSpace})|(?:(?!${rustSpace})[^])+`, "g");

/** Maximum number of columns by which a line of the parameters is moved to the left. */
const indentation = 8;

/**
 * Reads the calls in the action blocks of a turn, even of a turn that is malformed anywhere. A call is an id, the first
 * name after the id, and then the parameters. Any text may stand between these parts.
 *
 * **Source:** cohere-ai/melody, `src/parsing/action_filter.rs`; PyPI's `cohere_melody` 0.15.3.
 */
export class ActionReader {
  readonly #calls = new Map<number, OpenCall>();
  #place: Place = "outside";
  #index = 0;
  #json = new JsonEnd();
  #droppedSpaces = 0;
  #hasLineText = false;

  /** The calls of which the reader has read at least one part. */
  get calls(): readonly CohereCall[] {
    return [...this.#calls.values()];
  }

  /** Reads the text of one block, or the text of a block that remains before a special token. */
  read(text: string): void {
    if (text.endsWith("\\")) return;
    const piece = new Piece(text);
    while (this.#step(piece));
  }

  /** Reads the next part. Returns false if no part is left. */
  #step(piece: Piece): boolean {
    if (piece.isAtEnd) return false;
    switch (this.#place) {
      case "outside":
        return this.#enter("id", piece.skipPast(idStart));
      case "after-id":
        return this.#enter("name", piece.skipPast(nameStart));
      case "id":
        return this.#readId(piece);
      case "name":
        return this.#readName(piece);
      case "after-name":
        return this.#readAfterName(piece);
      case "parameters":
        return this.#readParameters(piece);
    }
  }

  #enter(place: Place, isFound: boolean): boolean {
    if (isFound) this.#place = place;
    return isFound;
  }

  #readId(piece: Piece): boolean {
    const id = piece.takeQuoted();
    if (id === undefined) return false;
    if (id !== "") this.#open();
    return this.#enter("after-id", true);
  }

  #readName(piece: Piece): boolean {
    const name = piece.takeQuoted();
    if (name === undefined) return false;
    if (name !== "") this.#open().name += name;
    return this.#enter("after-name", true);
  }

  /** Reads parameters anywhere after the name, even inside another call. */
  #readAfterName(piece: Piece): boolean {
    if (piece.holds(filledParameters)) {
      return this.#enter("parameters", piece.skipPast(parametersStart));
    }
    if (!piece.skipTo("}")) return false;
    this.#close();
    return true;
  }

  #readParameters(piece: Piece): boolean {
    const rest = piece.rest;
    const end = this.#json.push(rest);
    this.#addArguments(end === -1 ? rest : rest.slice(0, end));
    piece.skip(end === -1 ? rest.length : end);
    if (end !== -1) this.#close();
    return true;
  }

  #close(): void {
    this.#place = "outside";
    this.#index += 1;
    this.#json = new JsonEnd();
  }

  #addArguments(text: string): void {
    const kept = this.#unindent(text);
    if (kept !== "") this.#open().argumentsText += kept;
  }

  /** Drops white space at the start of each line, up to a limit. */
  #unindent(text: string): string {
    return text.replaceAll(lineParts, (part, lineBreak?: string, space?: string) => {
      if (lineBreak !== undefined) {
        this.#droppedSpaces = 0;
        this.#hasLineText = false;
      } else if (space === undefined) {
        this.#hasLineText = true;
      } else if (!this.#hasLineText && this.#droppedSpaces < indentation) {
        this.#droppedSpaces += 1;
        return "";
      }
      return part;
    });
  }

  #open(): OpenCall {
    const known = this.#calls.get(this.#index);
    if (known !== undefined) return known;
    const call = { name: "", argumentsText: "" };
    this.#calls.set(this.#index, call);
    return call;
  }
}

/** A text that is read from left to right, in linear time for any number of searches. */
class Piece {
  readonly #text: string;
  #position = 0;
  /**
   * The next match of each pattern. A pattern is searched again only after its match was passed.
   */
  readonly #next = new Map<RegExp, number>();

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#text.length;
  }

  get rest(): string {
    return this.#text.slice(this.#position);
  }

  skip(length: number): void {
    this.#position += length;
  }

  holds(pattern: RegExp): boolean {
    const known = this.#next.get(pattern);
    if (known !== undefined && known >= this.#position) return known !== Infinity;
    pattern.lastIndex = this.#position;
    const place = pattern.exec(this.#text)?.index ?? Infinity;
    this.#next.set(pattern, place);
    return place !== Infinity;
  }

  /** Moves past the next match, if there is one. */
  skipPast(pattern: RegExp): boolean {
    pattern.lastIndex = this.#position;
    if (!pattern.test(this.#text)) return false;
    this.#position = pattern.lastIndex;
    return true;
  }

  skipTo(character: string): boolean {
    const place = this.#text.indexOf(character, this.#position);
    if (place === -1) return false;
    this.#position = place;
    return true;
  }

  /** Takes the text before the next quote that is not escaped. */
  takeQuoted(): string | undefined {
    let isEscaped = false;
    for (let index = this.#position; index < this.#text.length; index++) {
      const character = this.#text[index];
      if (character === '"' && !isEscaped) {
        const quoted = this.#text.slice(this.#position, index);
        this.#position = index + 1;
        return quoted;
      }
      isEscaped = character === "\\" && !isEscaped;
    }
    return undefined;
  }
}
