import { nearestName } from "../../../packages/python-values/src/support/nearest-name.ts";
import type { ComparedMembers } from "../../environment/compared-members.ts";
import type { Task } from "../../task.ts";
import type { ProblemList } from "./problem-list.ts";

/** The members that scores want, and those that states have, over all episodes of a check. */
export class WantedMembers {
  /** The first task that wants each member. */
  readonly #wanted = new Map<string, Task>();
  readonly #had = new Set<string>();

  add({ wanted, state }: ComparedMembers, task: Task): void {
    for (const name of wanted) if (!this.#wanted.has(name)) this.#wanted.set(name, task);
    for (const name of state) this.#had.add(name);
  }

  /** Reports the wanted members that no state had. A policy cannot earn their reward. */
  report(problems: ProblemList): void {
    for (const [name, task] of this.#wanted) {
      if (this.#had.has(name)) continue;
      const nearest = nearestName(name, [...this.#had]);
      const remedy =
        nearest === undefined
          ? `expected a member that a state has (${listed([...this.#had])}), or one that a tool adds`
          : `did you mean \`${nearest}\`?`;
      problems.add(
        "warning",
        `score() wants \`${name}\`, and no state had such a member; ${remedy}`,
        {
          task,
        },
      );
    }
  }
}

/** The most names that a message lists. */
const mostListed = 12;

function listed(names: readonly string[]): string {
  if (names.length === 0) return "they have none";
  const more = names.length > mostListed ? ", …" : "";
  return `${names.slice(0, mostListed).join(", ")}${more}`;
}
