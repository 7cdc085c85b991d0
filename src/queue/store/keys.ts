/** The prefix of all keys in the store, including BullMQ's. */
export const prefix = "turnwright";

/** The channel for notifications. A process that misses one finds the change in its next check. */
export const newsChannel = `${prefix}:news`;

/** The key of a hash with the runs' entries, by run id. */
export const runsKey = `${prefix}:runs`;

/** The key of a hash with the workers' entries, by worker id. */
export const workersKey = `${prefix}:workers`;

/** The key that exists while a worker sends heartbeats. */
export const workerAliveKey = (worker: string): string => `${prefix}:worker:${worker}:alive`;

/** The key that exists while a run's hand-out sends heartbeats. Its value names the hand-out. */
export const runAliveKey = (run: string): string => `${prefix}:run:${run}:alive`;

/** The key of a run's policy state: its gate and its version. */
export const policyKey = (run: string): string => `${prefix}:run:${run}:policy`;

/**
 * The key of a hash with the revision of the policy's state that each worker of a run has
 * acknowledged.
 */
export const acknowledgedKey = (run: string): string => `${prefix}:run:${run}:acknowledged`;

/** The key of a set with the ids of a run's cancelled jobs. */
export const cancelledKey = (run: string): string => `${prefix}:run:${run}:cancelled`;

/** The name of a run's queue. */
export const queueName = (run: string): string => `run-${run}`;
