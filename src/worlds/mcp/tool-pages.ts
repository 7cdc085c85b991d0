import { describeError } from "../../errors.ts";
import { shortJson } from "../../secrets/shorten.ts";

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
 * Reads the pages of a server's tools. Stops at a page without a cursor, and at a cursor that was
 * followed before. An empty text is a cursor. Keeps the pages that were read.
 * @param isRefusal - True if the server refuses one of its own cursors with this error.
 * @throws the error of `readPage`, unless it is a refusal and tools were already read.
 */
export async function readPages(
  readPage: (cursor: string | undefined) => Promise<ToolPage>,
  isRefusal: (error: unknown) => boolean,
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
      if (tools.size === 0 || !isRefusal(error)) throw error;
      return cutAfter(
        `it refuses its own cursor ${shortJson(cursor, 100)} (${describeError(error)})`,
      );
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
    if (followed.has(next)) {
      return isIdle
        ? { tools: [...tools.values()] }
        : cutAfter(`its cursor ${shortJson(next, 100)} comes again`);
    }
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
