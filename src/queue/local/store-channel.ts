import { systemClock } from "../../async/clock.ts";
import type { FromWorker, ToWorker } from "./channel-message.ts";
import type { StoreConnection } from "./store-connection.ts";

interface Pending {
  readonly resolve: (answers: readonly unknown[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A connection to the store in the process that started this one. It uses the messages of the
 * process's channel.
 */
export class StoreChannel {
  readonly #send: (message: FromWorker) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(channel: string, text: string) => void>();
  #lastId = 0;
  #isClosed = false;

  /** @param send - Sends a message to the process of the store. */
  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  /** Handles a message from the process of the store. */
  receive(message: ToWorker): void {
    if (message.type === "news") {
      for (const listener of Array.from(this.#listeners)) listener(message.channel, message.text);
    } else if (message.type === "answers") {
      this.#take(message.id)?.resolve(message.answers);
    } else if (message.type === "refused") {
      const { code, id } = message;
      const error = Object.assign(new Error(message.message), code !== undefined && { code });
      this.#take(id)?.reject(error);
    }
  }

  /** Opens a connection for the clients of this process. */
  connect(): StoreConnection {
    return {
      clock: systemClock,
      perform: async (commands) => {
        if (this.#isClosed) throw closed();
        const id = ++this.#lastId;
        return await new Promise((resolve, reject) => {
          this.#pending.set(id, { resolve, reject });
          this.#send({ type: "commands", id, commands });
        });
      },
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      // Only the hand-out's process watches jobs.
      watch: () => () => {},
      close: () => {},
    };
  }

  /** Rejects all commands, because the process of the store has ended. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#pending.values()) reject(closed());
    this.#pending.clear();
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function closed(): Error {
  return new Error("The process that hands out has ended.");
}
