import type { ClientCall, ClientMessage } from "../conversation.ts";

interface OpenCall {
  readonly id: string;
  isAnswered: boolean;
}

/** Matches results that give a tool's name but no id to their calls. */
export class NamedResults {
  #all = new CallQueue();
  #byId = new Map<string, CallQueue>();
  #byName = new Map<string, CallQueue>();
  #isTurnOver = false;

  /** @param before - The conversation before the first result. */
  constructor(before: readonly ClientMessage[]) {
    const start = before.findLastIndex(({ role }) => role === "assistant");
    if (start === -1) return;
    for (const message of before.slice(start)) this.add(message);
  }

  /** Adds the next message of the conversation. */
  add(message: ClientMessage): void {
    if (message.role !== "assistant") {
      if (message.role === "tool") this.#byId.get(message.callId)?.answer();
      this.#isTurnOver = true;
      return;
    }
    // Calls in separate messages before their results belong to one turn.
    if (this.#isTurnOver) {
      this.#all = new CallQueue();
      this.#byId = new Map();
      this.#byName = new Map();
    }
    this.#isTurnOver = false;
    for (const call of message.calls) this.#open(call);
  }

  #open({ id, name }: ClientCall): void {
    const call = { id, isAnswered: false };
    this.#all.push(call);
    queueOf(this.#byId, id).push(call);
    queueOf(this.#byName, name).push(call);
  }

  /**
   * Returns the id of the tool's first call without a result.
   *
   * @param name - The tool's name. Empty: the first unanswered call of any tool.
   * @returns the name itself if there is no such call.
   */
  idOf(name: string): string {
    const queue = name === "" ? this.#all : this.#byName.get(name);
    return queue?.next?.id ?? name;
  }
}

function queueOf(queues: Map<string, CallQueue>, key: string): CallQueue {
  const queue = queues.get(key) ?? new CallQueue();
  queues.set(key, queue);
  return queue;
}

/** Calls in order. */
class CallQueue {
  readonly #calls: OpenCall[] = [];
  #index = 0;

  push(call: OpenCall): void {
    this.#calls.push(call);
  }

  /** The first call without a result. */
  get next(): OpenCall | undefined {
    while (this.#calls[this.#index]?.isAnswered === true) this.#index += 1;
    return this.#calls[this.#index];
  }

  answer(): void {
    const { next } = this;
    if (next !== undefined) next.isAnswered = true;
  }
}
