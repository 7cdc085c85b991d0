/**
 * Finds the end of a JSON value that may arrive in pieces. The value is the shortest prefix of all pieces that is valid
 * JSON, so a number ends at its first digit.
 *
 * **Source:** `serde_json::from_str`, tried on each beginning (nesting below 128, finite numbers, no surrogate without
 * its other half).
 */
export class JsonEnd {
  readonly #pieces: string[] = [];
  #state: "before" | "scalar" | "string" | "container" | "never" = "before";
  #depth = 0;
  #deepest = 0;
  #inString = false;
  #isEscaped = false;
  /** The part of a literal, or of a negative number, that was read so far. */
  #scalar = "";

  /** Returns the position in the piece after the value, or -1 if the value does not end in this piece. */
  push(piece: string): number {
    if (this.#state === "never") return -1;
    for (let index = 0; index < piece.length; index++) {
      if (!this.#closes(piece[index] as string)) continue;
      const text = this.#pieces.join("") + piece.slice(0, index + 1);
      if (this.#deepest < maxDepth && isStrictJson(text)) return index + 1;
      this.#state = "never";
    }
    this.#pieces.push(piece);
    return -1;
  }

  /** True if the value can end with this character. */
  #closes(character: string): boolean {
    switch (this.#state) {
      case "before":
        return this.#begin(character);
      case "scalar":
        return this.#closesScalar(character);
      case "string":
        return this.#closesString(character);
      case "container":
        return this.#closesContainer(character);
      case "never":
        return false;
    }
  }

  #begin(character: string): boolean {
    if (" \t\n\r".includes(character)) return false;
    if (character >= "0" && character <= "9") return true;
    if (character === '"') this.#state = "string";
    else if ("-tfn".includes(character)) {
      this.#state = "scalar";
      this.#scalar = character;
    } else if (character === "{" || character === "[") {
      this.#state = "container";
      this.#closesContainer(character);
    } else this.#state = "never";
    return false;
  }

  #closesScalar(character: string): boolean {
    this.#scalar += character;
    const written = this.#scalar;
    if (/^(?:-[0-9]|true|false|null)$/.test(written)) return true;
    if (!["true", "false", "null"].some((literal) => literal.startsWith(written))) {
      this.#state = "never";
    }
    return false;
  }

  #closesString(character: string): boolean {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === "\\") this.#isEscaped = true;
    else return character === '"';
    return false;
  }

  #closesContainer(character: string): boolean {
    if (this.#inString) {
      this.#inString = !this.#closesString(character);
    } else if (character === '"') {
      this.#inString = true;
    } else if (character === "{" || character === "[") {
      this.#depth += 1;
      this.#deepest = Math.max(this.#deepest, this.#depth);
    } else if (character === "}" || character === "]") {
      this.#depth -= 1;
    }
    return this.#depth === 0;
  }
}

/** The depth at which serde_json refuses a value. */
const maxDepth = 128;

function isStrictJson(text: string): boolean {
  try {
    JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\[^])*"|-?\d[\d.eE+-]*/g)) {
    const value: unknown = JSON.parse(token);
    if (typeof value === "string" ? /\p{Surrogate}/u.test(value) : !Number.isFinite(value))
      return false;
  }
  return true;
}
