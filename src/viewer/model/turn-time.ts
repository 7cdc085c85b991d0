import type { TurnRecord } from "../../episode/episode.ts";

/** A party that took a part of a turn's time. */
export interface TimeLane {
  readonly name: "queue" | "engine" | "parse" | "environment" | "user";
  readonly title: string;
  /** The measured time, and the lane that has it if it was not measured. */
  readonly meaning: string;
}

/** Every lane, in the order in which a turn goes through them. */
export const timeLanes: readonly TimeLane[] = [
  {
    name: "queue",
    title: "queue",
    meaning: "waiting in the engine until it took the request up, as the engine tells it",
  },
  { name: "engine", title: "engine", meaning: "sampling, with retries" },
  {
    name: "parse",
    title: "parse",
    meaning: "reading the turn, until its first call or words were on their way",
  },
  { name: "environment", title: "environment", meaning: "the tools" },
  { name: "user", title: "user", meaning: "the user's reply" },
];

/** The times in a turn's record. */
type TimedTurn = Pick<TurnRecord, "engineMs" | "queueMs" | "parseMs" | "environmentMs" | "userMs">;

/** Milliseconds of a turn by lane; `undefined` for what is not measured, which stands in another lane. */
export function turnTimes({
  engineMs,
  queueMs,
  parseMs,
  environmentMs,
  userMs,
}: TimedTurn): Readonly<Record<TimeLane["name"], number | undefined>> {
  return {
    queue: queueMs === undefined ? undefined : Math.min(queueMs, engineMs),
    engine: Math.max(0, engineMs - (queueMs ?? 0)),
    parse: parseMs,
    environment: environmentMs,
    user: userMs,
  };
}

/** All of a turn's time that is measured, in milliseconds. */
export function turnSum(turn: TimedTurn): number {
  return Object.values(turnTimes(turn)).reduce<number>((sum, ms) => sum + (ms ?? 0), 0);
}
