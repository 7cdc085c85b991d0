/** Begins the name of each key in the store, BullMQ's included. */
export const prefix = "turnwright";

/** The channel for notifications. A process that misses one finds the change in its next check. */
export const newsChannel = `${prefix}:news`;

/** The runs: a hash by their ids. */
export const runsKey = `${prefix}:runs`;

/** The workers: a hash by their ids. */
export const workersKey = `${prefix}:workers`;

/** There while a worker gives signs of life. */
export const workerAliveKey = (worker: string): string => `${prefix}:worker:${worker}:alive`;

/** The key that exists while a run's hand-out sends heartbeats. Its value names the hand-out. */
export const runAliveKey = (run: string): string => `${prefix}:run:${run}:alive`;

/** The key of a run's policy state: its gate and its version. */
export const policyKey = (run: string): string => `${prefix}:run:${run}:policy`;

/** Which state of the policy each worker of a run keeps to: a hash by workers. */
export const acknowledgedKey = (run: string): string => `${prefix}:run:${run}:acknowledged`;

/** Jobs that a run does not need any more: a set. */
export const cancelledKey = (run: string): string => `${prefix}:run:${run}:cancelled`;

/** The name of a run's queue. */
export const queueName = (run: string): string => `run-${run}`;
