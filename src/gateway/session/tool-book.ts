import type { ToolDefinition } from "../../message.ts";

/** So many sets of tools are kept. */
const keptSets = 64;

/** Their texts together are no longer than this, in UTF-16 code units. */
const keptLength = 4 * 1024 * 1024;

/**
 * Tools by the text in which a request gives them. Agents send the same with every request; what the
 * renderer and the parser have prepared of them is found again by the objects.
 */
export class ToolBook {
  readonly #sets = new Map<string, readonly ToolDefinition[]>();
  #length = 0;

  /** The tools of a text; `read` makes them where they are not known. */
  find(text: string, read: () => readonly ToolDefinition[]): readonly ToolDefinition[] {
    const known = this.#sets.get(text);
    // What was used last is forgotten last.
    this.#sets.delete(text);
    const tools = known ?? read();
    if (known === undefined) this.#length += text.length;
    this.#sets.set(text, tools);
    for (const oldest of this.#sets.keys()) {
      const isBounded = this.#sets.size <= keptSets && this.#length <= keptLength;
      if (isBounded || oldest === text) break;
      this.#sets.delete(oldest);
      this.#length -= oldest.length;
    }
    return tools;
  }
}
