import type { Task } from "../../task.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import type { User, UserLine, UserSession } from "../../user/user.ts";
import { attributed } from "./failed-request.ts";
import { requireText, type PythonLine } from "./python-answers.ts";
import type { PythonLease, PythonPool } from "./python-pool.ts";

/** The time limit of a line, in milliseconds. The caller's signal limits it as well. */
const lineMs = 600_000;

let nextUser = 1;

/** Returns the user that an environment's author wrote in Python. */
export function createPythonUser(pool: PythonPool, environment: string): User {
  return {
    strategy: "scripted",
    repeatable: pool.facts.repeatable,
    open: (task, { seed }) => new PythonUserSession(pool, { environment, task, seed }),
  };
}

class PythonUserSession implements UserSession {
  readonly #pool: PythonPool;
  readonly #place: { readonly environment: string; readonly task: Task; readonly seed: number };
  readonly #id = String(nextUser++);
  #lease: PythonLease | undefined;

  constructor(
    pool: PythonPool,
    place: { readonly environment: string; readonly task: Task; readonly seed: number },
  ) {
    this.#pool = pool;
    this.#place = place;
  }

  async begin({ signal }: { signal: AbortSignal }): Promise<string> {
    const { split, index } = this.#place.task;
    this.#lease = await this.#pool.lease();
    const line = await this.#ask("user", { split, index, seed: this.#place.seed }, signal);
    return requireText(line.text, "user/bad-line", `The opening line of ${this.#what()}`);
  }

  async reply(agentText: string, { signal }: { signal: AbortSignal }): Promise<UserLine> {
    const { text = "", leaves } = await this.#ask("say", { text: agentText }, signal);
    if (leaves !== true) return text;
    await this.#leave();
    return { text, leaves: true };
  }

  async #ask(what: string, given: object, signal: AbortSignal): Promise<PythonLine> {
    const answer = await attributed(
      { party: "user", what: this.#what() },
      async () => await this.#lease!.request(what, { user: this.#id, ...given }, { timeoutMs: lineMs, signal }),
    );
    return answer as PythonLine;
  }

  async #leave(): Promise<void> {
    await this.#lease!.request("leave", { user: this.#id }, { timeoutMs: lineMs }).catch(() => undefined);
    this.#lease![Symbol.dispose]();
  }

  #what(): string {
    return `user() of ${this.#place.environment} in task ${this.#place.task.id}`;
  }

  usage(): ReturnType<UserSession["usage"]> {
    return noSpending;
  }
}
