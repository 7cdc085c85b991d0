import type { Machine, ProcessPlace } from "./disk/process-place.ts";

/** A machine on which the processes with these pids run. */
export function fakeMachine(here: Partial<ProcessPlace>, running: readonly number[] = []): Machine {
  const place = { pid: 1, host: "one", bootId: "boot-1", pidNamespace: "pid:1", ...here };
  return {
    here: async () => await Promise.resolve(place),
    isRunning: async ({ pid }) => await Promise.resolve(pid === place.pid || running.includes(pid)),
  };
}
