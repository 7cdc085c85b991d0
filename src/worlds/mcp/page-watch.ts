import type * as mcp from "@modelcontextprotocol/client";
import type { ToolPage } from "./tool-pages.ts";

/**
 * Takes each page of tools out of its message before the MCP client reads it, because the client
 * would refuse a complete page for one invalid tool.
 */
export class PageWatch {
  #isWaiting = false;
  #page: ToolPage | undefined;

  /**
   * @param transport - A transport without a client. A client that connects later gets each message
   *   after this object.
   */
  constructor(transport: mcp.Transport) {
    Object.assign(transport, { onmessage: (message: unknown) => this.#look(message) });
  }

  /** Calls `ask`, which makes the client request one page, and returns the page that arrives during the call. */
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
    // The last page of some servers has no tools, which the client refuses.
    const { tools = null, nextCursor } = page;
    if (tools !== null && !Array.isArray(tools)) return;
    this.#page = { tools: tools ?? [], nextCursor };
    page.tools = [];
    delete page.nextCursor;
  }
}
