import { UsageError } from "../../errors.ts";
import { completeSandboxes } from "./complete-sandboxes.ts";
import type { Sandboxes } from "./sandbox.ts";

/**
 * Defines sandboxes of your own service from the function that opens one. `of()` is added.
 * @param parts.open - Opens a sandbox. It must end by itself after some time, because only `sweep`
 *   removes the sandboxes of a process that died.
 * @param parts.sweep - Called before the first sandbox is opened. Removes the sandboxes of dead
 *   processes, and returns their number.
 * @throws UsageError if `open` is not a function.
 */
export function defineSandboxes({
  open,
  sweep = async () => await Promise.resolve(0),
}: Pick<Sandboxes, "open"> & Partial<Pick<Sandboxes, "sweep">>): Sandboxes {
  if (typeof open !== "function" || typeof sweep !== "function") {
    const part = typeof open === "function" ? "sweep" : "open";
    throw new UsageError(`Cannot define sandboxes: their ${part} is not a function, expected one`);
  }
  // A synchronous error must reach the same handler as a rejection.
  return completeSandboxes({ open, sweep: async () => await sweep() });
}
