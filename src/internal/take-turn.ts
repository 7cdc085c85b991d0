import { setImmediate as nextLoop } from "node:timers/promises";

/** Longest stretch of work between two rounds of the event loop, in milliseconds. */
const stretchMs = 5;

const waiting: (() => void)[] = [];
let isServing = false;

/**
 * Waits for a turn on the event loop. Whoever is about to work for a good part of a millisecond
 * calls it first: a thousand episodes that wake up together then take their turns a few at a time,
 * and the loop gets round to sockets, timers and signals in between.
 *
 * The queue belongs to the thread, as the event loop does.
 */
export async function takeTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (!isServing) void serve();
  });
}

async function serve(): Promise<void> {
  isServing = true;
  let next: (() => void) | undefined;
  let startedAt = performance.now();
  while ((next = waiting.shift()) !== undefined) {
    next();
    // Lets the one that was called work up to its next wait.
    await Promise.resolve();
    await Promise.resolve();
    if (performance.now() - startedAt < stretchMs) continue;
    await nextLoop();
    startedAt = performance.now();
  }
  isServing = false;
}
