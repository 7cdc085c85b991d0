import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { AttemptJob, OpenGroup, StartedTask } from "./open-group.ts";

/** The attempts that can be played next, oldest groups first. */
export class JobQueue {
  /** True if the attempts of a group branch from its first one, and so wait for it. */
  readonly isBranching: boolean;
  #jobs: AttemptJob[] = [];
  #next = 0;
  /** The number of groups with attempts that wait for the first one. */
  #waitingCount = 0;
  #branched: Resolvers<void> | undefined;

  constructor({ isBranching }: { readonly isBranching: boolean }) {
    this.isBranching = isBranching;
  }

  /** Adds the jobs of a group. If attempts branch from the first one of their group, the others wait for it. */
  add({ group, jobs }: Pick<StartedTask, "group" | "jobs">): void {
    const waitForFirst = this.isBranching && jobs[0]?.assignment.sampleIndex === 0;
    // One by one: `push(...jobs)` fails for more arguments than a call can have.
    for (const [place, job] of jobs.entries()) {
      (waitForFirst && place > 0 ? group.waiting : this.#jobs).push(job);
    }
    if (group.waiting.length > 0) this.#waitingCount += 1;
  }

  /** Returns the next job of a group that is not complete. */
  take(): AttemptJob | undefined {
    for (;;) {
      const job = this.#jobs[this.#next];
      if (job === undefined) {
        this.#jobs.length = 0;
        this.#next = 0;
        return undefined;
      }
      this.#next += 1;
      if (!job.group.isComplete) return job;
    }
  }

  /** Adds the jobs that waited for a group's first attempt, in front of those of later groups. */
  releaseWaiting(group: OpenGroup): void {
    if (group.waiting.length === 0) return;
    this.#jobs = [...group.waiting.splice(0), ...this.#jobs.slice(this.#next)];
    this.#next = 0;
    this.#waitingCount -= 1;
    this.wake();
  }

  /** True while jobs wait for the first attempt of their group. */
  get isWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  /** Resolves when waiting jobs are released, or when `wake()` is called. */
  async untilBranched(): Promise<"branched"> {
    this.#branched ??= withResolvers();
    await this.#branched.promise;
    return "branched";
  }

  wake(): void {
    this.#branched?.resolve();
    this.#branched = undefined;
  }
}
