import type * as mcp from "@modelcontextprotocol/client";
import type { ToolPage } from "./tool-pages.ts";

/**
 * Takes a page of tools out of the message that brings it, before the protocol's library sees it: the
 * library refuses the whole page for one tool that it does not like.
 */
export class PageWatch {
  #isWaiting = false;
  #page: ToolPage | undefined;

  /** @param transport - One that no client reads yet: a client hands each message here first. */
  constructor(transport: mcp.Transport) {
    Object.assign(transport, { onmessage: (message: unknown) => this.#look(message) });
  }

  /** Does what asks for a page, and returns the page that came. */
  async take(ask: () => Promise<void>): Promise<ToolPage> {
    this.#isWaiting = true;
    this.#page = undefined;
    try {
      await ask();
    } finally {
      this.#isWaiting = false;
    }
    return this.#page ?? { tools: [], nextCursor: undefined };
  }

  #look(message: unknown): void {
    if (!this.#isWaiting) return;
    const { result } = message as { readonly result?: unknown };
    if (typeof result !== "object" || result === null) return;
    const page = result as { tools?: unknown; nextCursor?: unknown };
    // The last page of some servers names no tools, and the library refuses it.
    const { tools = null, nextCursor } = page;
    if (tools !== null && !Array.isArray(tools)) return;
    this.#page = { tools: tools ?? [], nextCursor };
    page.tools = [];
    delete page.nextCursor;
  }
}
