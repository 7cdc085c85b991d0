import type { Task } from "../../task.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import type { User, UserLine, UserSession } from "../../user/user.ts";
import { attributed } from "./failed-request.ts";
import { requireText, type PythonLine } from "./python-answers.ts";
import type { PythonPool } from "./python-pool.ts";

/** The time limit of a line, in milliseconds. The caller's signal limits it as well. */
const lineMs = 600_000;

/** Returns the user that an environment's author wrote in Python. */
export function createPythonUser(pool: PythonPool, environment: string): User {
  return {
    strategy: "scripted",
    repeatable: pool.facts.repeatable,
    open: (task, { seed }) => new PythonUserSession(pool, { environment, task, seed }),
  };
}

/** One conversation. Any process may answer, because the Python side keeps nothing of it. */
class PythonUserSession implements UserSession {
  readonly #pool: PythonPool;
  readonly #place: { readonly environment: string; readonly task: Task; readonly seed: number };
  readonly #said: string[] = [];
  /** The lines of a user that does not react. */
  #lines: readonly string[] | undefined;

  constructor(
    pool: PythonPool,
    place: { readonly environment: string; readonly task: Task; readonly seed: number },
  ) {
    this.#pool = pool;
    this.#place = place;
  }

  async begin({ signal }: { signal: AbortSignal }): Promise<string> {
    const { text } = await this.#next(signal);
    return requireText(text, "user/bad-line", `Cannot use the opening line of ${this.#what()}`);
  }

  async reply(agentText: string, { signal }: { signal: AbortSignal }): Promise<UserLine> {
    this.#said.push(agentText);
    const { text = "", leaves = false } = await this.#next(signal);
    return leaves ? { text, leaves } : text;
  }

  async #next(signal: AbortSignal): Promise<PythonLine> {
    const said = this.#said;
    if (this.#lines === undefined) {
      const { task, seed } = this.#place;
      const given = { split: task.split, index: task.index, seed, said };
      using lease = await this.#pool.lease();
      const answer = (await attributed(
        { party: "user", what: this.#what() },
        async () => await lease.request("say", given, { timeoutMs: lineMs, signal }),
      )) as PythonLine;
      if (answer.lines === undefined) return answer;
      this.#lines = answer.lines;
    }
    const text = this.#lines[said.length];
    return text === undefined ? { leaves: true } : { text };
  }

  #what(): string {
    return `user() of ${this.#place.environment} in task ${this.#place.task.id}`;
  }

  usage(): ReturnType<UserSession["usage"]> {
    return noSpending;
  }
}
