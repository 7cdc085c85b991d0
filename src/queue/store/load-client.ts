import type * as bullmq from "bullmq";
import type { Redis } from "ioredis";
import { UsageError } from "../../errors.ts";

/** The packages that speak to the queue's store. */
export interface StoreClients {
  readonly bullmq: typeof bullmq;
  readonly Redis: typeof Redis;
}

/**
 * Loads the client packages of the queue's store. Programs without a queue do not need them.
 *
 * @throws UsageError that names the missing packages and how to install them.
 */
export async function loadStoreClients(): Promise<StoreClients> {
  try {
    const [queues, { Redis: client }] = await Promise.all([import("bullmq"), import("ioredis")]);
    return { bullmq: queues, Redis: client };
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new UsageError(
      "Cannot use --queue: it needs the packages bullmq and ioredis, install them with `npm install bullmq ioredis`",
      { cause: error },
    );
  }
}

/** True if a package is not installed. Returns false if the package itself is faulty. */
export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
