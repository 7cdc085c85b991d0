import type { TurnRecord } from "../../episode/episode.ts";

/** A part of a turn's time, by the party that used it. */
export interface TimeLane {
  readonly name: "queue" | "engine" | "parse" | "environment" | "user";
  readonly title: string;
  /** The measured time, and the lane that includes it if it was not measured. */
  readonly meaning: string;
}

/** All lanes in the order of a turn. */
export const timeLanes: readonly TimeLane[] = [
  {
    name: "queue",
    title: "queue",
    meaning: "waiting in the engine until it starts the request, as the engine reports it",
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

/**
 * Returns a turn's time by lane, in milliseconds. `undefined` for a time that was not measured;
 * another lane includes it.
 */
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

/** Returns the sum of a turn's measured times, in milliseconds. */
export function turnSum(turn: TimedTurn): number {
  return Object.values(turnTimes(turn)).reduce<number>((sum, ms) => sum + (ms ?? 0), 0);
}
