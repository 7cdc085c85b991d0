import type { FaultRequest, ServerFault, ServerFaults } from "../server-fault.ts";

/** Which fault the next request meets. */
export interface FaultQueue {
  next(request: FaultRequest): ServerFault | undefined;
  /**
   * Adds faults for the next requests that have none yet. Has no effect if a function chooses the
   * faults.
   */
  add(faults: readonly (ServerFault | undefined)[]): void;
}

/** Makes a queue that begins with these faults. */
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
