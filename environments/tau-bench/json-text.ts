import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { compareCodePoints } from "../../packages/python-values/src/text/compare-code-points.ts";
import { pythonRepr, reprString } from "../../packages/python-values/src/text/repr.ts";
import { tupleText } from "./database-text.ts";

const quote = 0x22;
const comma = 0x2c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** A number, or one of `true`, `false` and `null`. */
const scalarPattern = /[^\s,\]}]+/y;

/**
 * Converts JSON to the text that τ-bench hashes, without making the values. A first hash of a whole database then
 * takes a third of the time.
 */
export class JsonText {
  #json = "";
  #at = 0;
  /** The texts of scalars, which are often equal. */
  readonly #scalars = new Map<string, string>();

  /** Returns `hashableText()` of a valid document's value. */
  of(json: string): string {
    this.#json = json;
    this.#at = 0;
    return this.#readValue();
  }

  #readValue(): string {
    const first = this.#next();
    if (first === quote) return reprString(this.#readString());
    if (first === openObject) return this.#readObject();
    return first === openList ? this.#readList() : this.#readScalar();
  }

  #readScalar(): string {
    scalarPattern.lastIndex = this.#at;
    const [scalar] = scalarPattern.exec(this.#json)!;
    this.#at += scalar.length;
    let text = this.#scalars.get(scalar);
    if (text === undefined) {
      text = pythonRepr(parsePythonJson(scalar));
      this.#scalars.set(scalar, text);
    }
    return text;
  }

  #readList(): string {
    const items: string[] = [];
    this.#at += 1;
    while (this.#next() !== closeList) {
      items.push(this.#readValue());
      if (this.#next() === comma) this.#at += 1;
    }
    this.#at += 1;
    return tupleText(items);
  }

  #readObject(): string {
    const members = new Map<string, string>();
    this.#at += 1;
    while (this.#next() !== closeObject) {
      const key = this.#readString();
      this.#next();
      // The colon.
      this.#at += 1;
      members.set(key, this.#readValue());
      if (this.#next() === comma) this.#at += 1;
    }
    this.#at += 1;
    const keys = [...members.keys()].sort(compareCodePoints);
    return tupleText(keys.map((key) => `(${reprString(key)}, ${members.get(key)})`));
  }

  #readString(): string {
    const json = this.#json;
    const start = this.#at;
    let end = json.indexOf('"', start + 1);
    const plain = json.slice(start + 1, end);
    if (!plain.includes("\\")) {
      this.#at = end + 1;
      return plain;
    }
    while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
    this.#at = end + 1;
    return parsePythonJson(json.slice(start, end + 1)) as string;
  }

  /** Skips white space. Returns the next unit. */
  #next(): number {
    for (;;) {
      const unit = this.#json.charCodeAt(this.#at);
      if (unit > 0x20) return unit;
      this.#at += 1;
    }
  }
}

/** True if an odd number of backslashes is before the unit. */
function isEscaped(json: string, at: number): boolean {
  let start = at;
  while (json[start - 1] === "\\") start -= 1;
  return (at - start) % 2 === 1;
}
