/** Keeps the last characters of a program's output. */
export class KeptTail {
  readonly #length: number;
  #text = "";

  constructor(length: number) {
    this.#length = length;
  }

  take(piece: string): void {
    const text = this.#text + piece;
    this.#text = text.length > this.#length ? text.slice(-this.#length) : text;
  }

  read(): string {
    return this.#text;
  }
}
