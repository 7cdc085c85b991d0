import type { ToolDefinition } from "../../message.ts";
import { TextBook } from "./text-book.ts";

/**
 * Tools by the list in which a request gives them. Agents send the same with every request; what the
 * renderer and the parser have prepared of them is found again by the objects.
 */
export class ToolBook {
  readonly #byText = new TextBook<readonly ToolDefinition[]>();
  /** Most requests have their lists from the same text, which is read once. */
  readonly #byList = new WeakMap<readonly unknown[], readonly ToolDefinition[]>();

  /** The tools of a list; `read` makes them where they are not known. */
  find(list: readonly unknown[], read: () => readonly ToolDefinition[]): readonly ToolDefinition[] {
    const known = this.#byList.get(list);
    if (known !== undefined) return known;
    const tools = this.#byText.find(JSON.stringify(list), read);
    this.#byList.set(list, tools);
    return tools;
  }
}
