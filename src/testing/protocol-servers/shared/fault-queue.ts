import type { FaultRequest, ServerFault, ServerFaults } from "../server-fault.ts";

/** Chooses the fault of each request. */
export interface FaultQueue {
  next(request: FaultRequest): ServerFault | undefined;
  /**
   * Adds faults for the next requests that have none yet. Has no effect if a function chooses the
   * faults.
   */
  add(faults: readonly (ServerFault | undefined)[]): void;
}

/** Creates a queue that starts with these faults. */
export function createFaultQueue(faults: ServerFaults): FaultQueue {
  if (typeof faults === "function") {
    let requestIndex = 0;
    return {
      next: (request) => faults(request, requestIndex++),
      add: () => undefined,
    };
  }
  const queued = [...faults];
  return {
    next: () => queued.shift() ?? undefined,
    add: (more) => queued.push(...more),
  };
}
