import { setImmediate as nextLoop } from "node:timers/promises";

/** Longest stretch of paced work in one round of the event loop, in milliseconds. */
const stretchMs = 3;

const waiting: (() => void)[] = [];
let isServing = false;
/** When this round's first paced work began; absent where there was none yet. */
let roundStartedAt: number | undefined;

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

/**
 * Whether there is a turn to wait for. Where there is not, whoever goes on at once, without an `await` in
 * between, spares itself the way through the queue: `if (isTurnOver()) await takeTurn();`
 */
export function isTurnOver(): boolean {
  return isServing || isRoundOver();
}

async function serve(): Promise<void> {
  isServing = true;
  let next = 0;
  while (next < waiting.length) {
    if (isRoundOver()) {
      waiting.splice(0, next);
      next = 0;
      await nextLoop();
      continue;
    }
    waiting[next++]!();
    // Lets the one that was called work up to its next wait.
    await Promise.resolve();
    await Promise.resolve();
  }
  waiting.length = 0;
  isServing = false;
}

/** Several callbacks of one round, such as a thousand timers at once, share its stretch. */
function isRoundOver(): boolean {
  if (roundStartedAt === undefined) {
    roundStartedAt = performance.now();
    setImmediate(() => {
      roundStartedAt = undefined;
    });
    return false;
  }
  return performance.now() - roundStartedAt >= stretchMs;
}
