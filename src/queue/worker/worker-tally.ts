import type { TurnRecord } from "../../episode/episode.ts";
import type { WorkerEntry } from "../run/worker-entry.ts";

/** Counts what a worker does. */
export class WorkerTally {
  #played = 0;
  #turns = 0;
  #sampledTokens = 0;
  readonly #spentMs = { engine: 0, user: 0, environment: 0 };
  #utilization = performance.eventLoopUtilization();

  attemptPlayed(): void {
    this.#played += 1;
  }

  turnEnded({ sampledTokenCount, engineMs, userMs = 0, environmentMs }: TurnRecord): void {
    this.#turns += 1;
    this.#sampledTokens += sampledTokenCount;
    this.#spentMs.engine += engineMs;
    this.#spentMs.user += userMs;
    this.#spentMs.environment += environmentMs;
  }

  /** Returns the counts. `busy` covers the time since the last call. */
  read(): Pick<WorkerEntry, "played" | "turns" | "sampledTokens" | "spentMs" | "busy"> {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#utilization);
    this.#utilization = now;
    return {
      played: this.#played,
      turns: this.#turns,
      sampledTokens: this.#sampledTokens,
      spentMs: { ...this.#spentMs },
      busy: Number.isFinite(utilization) ? utilization : 0,
    };
  }
}
