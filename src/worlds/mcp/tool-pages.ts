import { describeError } from "../../errors.ts";
import { shorten, shortJson } from "../../secrets/shorten.ts";

/** A page of tools, as a server sent it. */
export interface ToolPage {
  readonly tools: readonly unknown[];
  readonly nextCursor: unknown;
}

/** All pages of a server's tools. */
export interface ToolListing {
  readonly tools: readonly unknown[];
  /** The reason why the list may be incomplete. Absent if all pages were read. */
  readonly cut?: string;
}

/** Maximum number of pages to read. */
const mostPages = 200;
/** The largest number of consecutive pages without new tools. */
const mostIdlePages = 3;

/**
 * Reads the pages of a server's tools. Stops at a page without a cursor, and at a cursor that was followed before if its
 * page brings nothing new: some servers keep the position and always send the same cursor. An empty text is a cursor.
 * Keeps the pages that were read.
 * @param faultOf - Returns the server's fault if it answered one of its own cursors without a page, and `undefined` for
 *   an outage.
 * @throws the error of `readPage`, unless it is such a fault and tools were already read.
 */
export async function readPages(
  readPage: (cursor: string | undefined) => Promise<ToolPage>,
  faultOf: (error: unknown) => string | undefined,
): Promise<ToolListing> {
  const tools = new Map<unknown, unknown>();
  const followed = new Set<string>();
  let cursor: string | undefined;
  let idleCount = 0;
  const cutAfter = (why: string): ToolListing => ({ tools: [...tools.values()], cut: why });
  for (let pageCount = 0; pageCount < mostPages; pageCount++) {
    let page: ToolPage;
    try {
      page = await readPage(cursor);
    } catch (error) {
      const fault = tools.size === 0 ? undefined : faultOf(error);
      if (fault === undefined) throw error;
      const why = shorten(describeError(error).replaceAll(/\s+/g, " "), 1000);
      return cutAfter(`it ${fault} its own cursor ${shortJson(cursor, 100)} (${why})`);
    }
    const before = tools.size;
    // A tool that is repeated word for word counts once.
    for (const tool of page.tools) tools.set(keyOf(tool), tool);
    const isIdle = tools.size === before;
    idleCount = isIdle ? idleCount + 1 : 0;
    const next = page.nextCursor;
    if (next === undefined || next === null) return { tools: [...tools.values()] };
    if (typeof next !== "string")
      return cutAfter(`its cursor is ${shortJson(next, 100)}, expected a text`);
    if (isIdle && followed.has(next)) return { tools: [...tools.values()] };
    if (idleCount >= mostIdlePages) {
      return cutAfter(`${mostIdlePages} pages one after the other bring nothing new`);
    }
    followed.add(next);
    cursor = next;
  }
  return cutAfter(`its list has no end after ${mostPages} pages`);
}

/**
 * Returns a key that equal tools share. A tool that nests too deeply to be written is its own key.
 */
function keyOf(tool: unknown): unknown {
  try {
    return JSON.stringify(tool);
  } catch {
    return tool;
  }
}
