import type { DialectName } from "../dialects/dialect.ts";
import type { ToolSet } from "../conversation.ts";
import { TextCache } from "./text-cache.ts";
import { exactKey } from "../../json/exact-json.ts";

/** A request's list of tools. */
interface ToolList {
  /** The protocol of the request. It is part of the key, because dialects read the same list differently. */
  readonly dialect: DialectName;
  readonly list: readonly unknown[];
}

/**
 * Caches the tools of a request by their list. Agents send equal tools with every request, and the
 * renderer and the parser cache by the returned objects.
 */
export class ToolCache {
  readonly #byText = new TextCache<ToolSet>();
  /**
   * The tools by the list object. A lookup is faster than by the text: most requests share the object, because its text
   * is parsed once.
   */
  readonly #byList = new WeakMap<readonly unknown[], Map<DialectName, ToolSet>>();

  /** Returns the cached tools of a list, or the result of `read`. */
  find({ dialect, list }: ToolList, read: () => ToolSet): ToolSet {
    const byDialect = this.#byList.get(list) ?? new Map<DialectName, ToolSet>();
    const cached = byDialect.get(dialect);
    if (cached !== undefined) return cached;
    const tools = this.#byText.find(`${dialect}${exactKey(list)}`, read);
    this.#byList.set(list, byDialect.set(dialect, tools));
    return tools;
  }
}
