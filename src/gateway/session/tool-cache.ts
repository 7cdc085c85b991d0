import type { DialectName } from "../dialects/dialect.ts";
import type { ToolSet } from "../conversation.ts";
import { TextCache } from "./text-cache.ts";
import { exactKey } from "../../python/json/exact-json.ts";

/** A list of tools as a request gives it. */
interface ToolList {
  /** The same text may be other tools in another dialect, or none. */
  readonly dialect: DialectName;
  readonly list: readonly unknown[];
}

/**
 * Tools by the list in which a request gives them. Agents send the same with every request; what the
 * renderer and the parser have prepared of them is found again by the objects.
 */
export class ToolCache {
  readonly #byText = new TextCache<ToolSet>();
  /** Most requests have their lists from the same text, which is read once. */
  readonly #byList = new WeakMap<readonly unknown[], Map<DialectName, ToolSet>>();

  /** The tools of a list; `read` makes them where they are not known. */
  find({ dialect, list }: ToolList, read: () => ToolSet): ToolSet {
    const byDialect = this.#byList.get(list) ?? new Map<DialectName, ToolSet>();
    const known = byDialect.get(dialect);
    if (known !== undefined) return known;
    const tools = this.#byText.find(`${dialect}${exactKey(list)}`, read);
    this.#byList.set(list, byDialect.set(dialect, tools));
    return tools;
  }
}
