import { systemClock } from "../../async/clock.ts";
import type { McpConnection } from "./mcp-connection.ts";

/** The time after which an unused connection is closed, in milliseconds. */
const keptMs = 1_000;

/**
 * One connection for all episodes. It opens on first use, opens again after a loss, and closes
 * shortly after the last user has gone, so that it does not keep the process alive.
 */
export class SharedConnection implements AsyncDisposable {
  readonly #open: () => Promise<McpConnection>;
  #current: Promise<McpConnection> | undefined;
  /**
   * Connections that have ended but may still have calls in progress. They are closed together with the current
   * connection.
   */
  readonly #ended: McpConnection[] = [];
  #userCount = 0;
  #callOff: (() => void) | undefined;

  constructor(open: () => Promise<McpConnection>) {
    this.#open = open;
  }

  /** Keeps the connection open until it is disposed of. */
  lease(): AsyncDisposable {
    this.#callOff?.();
    this.#userCount += 1;
    let isHeld = true;
    return {
      [Symbol.asyncDispose]: async () => {
        if (!isHeld) return;
        isHeld = false;
        this.#userCount -= 1;
        if (this.#userCount > 0) return;
        this.#callOff = systemClock.after(keptMs, () => void this[Symbol.asyncDispose]());
      },
    };
  }

  /** Returns the current connection, or opens a new one. */
  async connection(): Promise<McpConnection> {
    const known = this.#current;
    if (known !== undefined) {
      const connection = await known;
      if (!connection.isClosed) return connection;
      // The first caller opens the next connection, and the others wait for it.
      if (this.#current === known) {
        this.#current = undefined;
        this.#ended.push(connection);
      }
      return await this.connection();
    }
    const opening = this.#open();
    this.#current = opening;
    try {
      return await opening;
    } catch (error) {
      if (this.#current === opening) this.#current = undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#callOff?.();
    const known = this.#current;
    this.#current = undefined;
    const connection = await known?.catch(() => undefined);
    await connection?.[Symbol.asyncDispose]();
    for (const ended of this.#ended.splice(0)) await ended[Symbol.asyncDispose]();
  }
}
