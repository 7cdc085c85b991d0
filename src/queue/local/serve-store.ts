import type { FromWorker, ToWorker } from "./channel-message.ts";
import type { LocalStore, TakenJob } from "./local-store.ts";
import { performCommand, type StoreCommand } from "./store-connection.ts";

/** A job that a worker holds. */
interface HeldJob {
  readonly base: string;
  readonly id: string;
  readonly token: string;
}

/** Performs the commands of one worker's process. */
export class ServedStore {
  readonly #store: LocalStore;
  readonly #send: (message: ToWorker) => void;
  readonly #held = new Map<string, HeldJob>();
  readonly #unsubscribe: () => void;

  /** @param send - Sends a message to the worker. */
  constructor(store: LocalStore, send: (message: ToWorker) => void) {
    this.#store = store;
    this.#send = send;
    this.#unsubscribe = store.subscribe((channel, text) => send({ type: "news", channel, text }));
  }

  /** Performs commands and sends their answers. */
  receive({ id, commands }: Extract<FromWorker, { type: "commands" }>): void {
    try {
      const answers = commands.map((command) => this.#perform(command));
      this.#send({ type: "answers", id, answers });
    } catch (error) {
      const { code, message } = error as { readonly code?: unknown; readonly message: string };
      this.#send({ type: "refused", id, message, ...(code !== undefined && { code }) });
    }
  }

  #perform(command: StoreCommand): unknown {
    const answer = performCommand(this.#store, command);
    const [name, base, about] = command;
    if (name === "takeJob" && answer !== null) {
      const { id } = answer as TakenJob;
      const { token } = about as { readonly token: string };
      this.#held.set(id, { base: base as string, id, token });
    } else if (name === "completeJob" || name === "returnJob") {
      this.#held.delete(about as string);
    }
    return answer;
  }

  /** Returns the worker's jobs to the queue, because its process has ended. */
  release(): void {
    this.#unsubscribe();
    for (const { base, id, token } of this.#held.values()) this.#store.returnLost(base, id, token);
    this.#held.clear();
  }
}
