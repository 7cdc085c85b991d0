import { UsageError } from "../../errors.ts";
import { completeSandboxes } from "./complete-sandboxes.ts";
import type { Sandboxes } from "./sandbox.ts";

/**
 * Sandboxes of a service of yours, from the one function that opens them; `of()` is supplied.
 *
 * @param parts.open - Opens one. It is to end by itself after some time: nobody else clears away what a process
 *   that died has left, unless `sweep` does.
 * @param parts.sweep - Asked before the first is opened; clears away what dead processes have left, and says how
 *   much that was.
 * @throws UsageError where `open` is no function.
 */
export function defineSandboxes({
  open,
  sweep = async () => await Promise.resolve(0),
}: Pick<Sandboxes, "open"> & Partial<Pick<Sandboxes, "sweep">>): Sandboxes {
  if (typeof open !== "function" || typeof sweep !== "function") {
    const part = typeof open === "function" ? "sweep" : "open";
    throw new UsageError(`Cannot define sandboxes: their ${part} is no function, expected one`);
  }
  // What throws at once is to be caught like what rejects.
  return completeSandboxes({ open, sweep: async () => await sweep() });
}
