import {
  pythonLower,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonInt, parsePythonNumber } from "../../shared/python/python-number.ts";
import { step3p5TextTypes } from "./step3p5-schema.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const intType = /^(?:u?int|long|short|unsigned)/;
const numberType = /^(?:num|float)/;
const booleanTypes: ReadonlySet<string> = new Set(["boolean", "bool", "binary"]);

/**
 * Writes one argument while its value grows. After each piece, the complete value so far is converted to text, and the
 * part of the text beyond the length of the previous text is written.
 */
export class Step3p5Argument {
  readonly #type: string;
  #value = "";
  /** The length of the value at the previous text, if that text was the value itself. */
  #covered = 0;
  /** The previous text, if it was not the value itself. */
  #converted: string | undefined;
  #isPlain: boolean;

  constructor(type: string) {
    this.#type = type;
    this.#isPlain = !intType.test(type) && !numberType.test(type) && !booleanTypes.has(type);
  }

  /** The value so far. */
  get value(): string {
    return this.#value;
  }

  /**
   * Adds to the value and returns the text to write.
   *
   * @throws PythonError `OverflowError` for an infinite number.
   */
  push(data: string): string {
    this.#value += data;
    // There is a bracket between two pieces, and a number contains no bracket.
    if (!booleanTypes.has(this.#type)) this.#isPlain ||= /[<>\]]/.test(data);
    if (this.#isNull()) {
      this.#covered = 0;
      this.#converted = undefined;
      return "";
    }
    const converted = this.#isPlain ? undefined : this.#convert();
    return converted === undefined ? this.#writeValue(data) : this.#writeConverted(converted);
  }

  /** Checks the final value. @throws PythonError `OverflowError` for an infinite number. */
  check(): void {
    if (!this.#isPlain && !this.#isNull()) this.#convert();
  }

  #isNull(): boolean {
    return this.#value.length === 4 && pythonLower(this.#value) === "null";
  }

  #convert(): string | undefined {
    const type = this.#type;
    if (booleanTypes.has(type)) {
      return String(this.#value.length === 4 && pythonLower(this.#value) === "true");
    }
    const read = intType.test(type) ? parsePythonInt : parsePythonNumber;
    const number = catchPython<PyValue>(() => read(this.#value), "ValueError", "TypeError");
    return number === undefined ? undefined : stringifyPythonJson(number);
  }

  #writeValue(data: string): string {
    const added = this.#addedBy(data);
    this.#converted = undefined;
    this.#covered = this.#value.length;
    return step3p5TextTypes.has(this.#type) ? writeJson(added).slice(1, -1) : added;
  }

  /** Returns the part of the value's text that was not written yet. The complete value is rarely read. */
  #addedBy(data: string): string {
    const written = this.#converted;
    if (written !== undefined) {
      return this.#value.slice(skipCharacters(this.#value, written.length));
    }
    const isNext = this.#covered === this.#value.length - data.length;
    return isNext ? data : this.#value.slice(this.#covered);
  }

  #writeConverted(converted: string): string {
    const before = this.#converted ?? this.#value.slice(0, this.#covered);
    this.#converted = converted;
    return converted.slice(Array.from(before.slice(0, 2 * converted.length)).length);
  }
}

/** Returns the position in the text after a number of characters. */
function skipCharacters(text: string, count: number): number {
  const skipped = Array.from(text.slice(0, 2 * count)).slice(0, count);
  return skipped.join("").length;
}
