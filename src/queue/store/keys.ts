/** Begins the name of each key in the store, BullMQ's included. */
export const prefix = "turnwright";

/** Where news travel: what has to be looked at now. Whoever misses them looks a moment later. */
export const newsChannel = `${prefix}:news`;

/** What is known of runs: a hash by their ids. */
export const runsKey = `${prefix}:runs`;

/** What is known of workers: a hash by their ids. */
export const workersKey = `${prefix}:workers`;

/** There while a worker gives signs of life. */
export const workerAliveKey = (worker: string): string => `${prefix}:worker:${worker}:alive`;

/** There while whoever hands out a run gives signs of life; holds who that is. */
export const runAliveKey = (run: string): string => `${prefix}:run:${run}:alive`;

/** Whether a run's policy may be asked, and which version it has. */
export const policyKey = (run: string): string => `${prefix}:run:${run}:policy`;

/** Which state of the policy each worker of a run keeps to: a hash by workers. */
export const acknowledgedKey = (run: string): string => `${prefix}:run:${run}:acknowledged`;

/** Jobs that a run does not need any more: a set. */
export const cancelledKey = (run: string): string => `${prefix}:run:${run}:cancelled`;

/** The name of a run's queue. */
export const queueName = (run: string): string => `run-${run}`;
