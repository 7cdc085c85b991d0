/** Longest stretch of paced work in one round of the event loop, in milliseconds. */
const stretchMs = 3;

/** When work that can be cut anywhere ends the round, in milliseconds: the collector and a last part still have room. */
const cutMs = 2;

/** Who wait for their first turn, or lost one twice. */
let line: (() => void)[] = [];
/** Of the next in line. */
let nextInLine = 0;
/** Who lost their turn when the round was over. They are called first in the next one. */
let cutShort: (() => void)[] = [];
/** Whether the next to be called will be, in this round or in the next. */
let isServing = false;
/** Whether what runs now was called, and whether it may be called first if it loses its turn. */
let called: "no" | "in line" | "first" = "no";
/** When this round's first paced work began; absent where there was none yet. */
let roundStartedAt: number | undefined;
/** Whether the round was ended before its time. */
let isCut = false;

/**
 * Waits for a turn on the event loop. Whoever is about to work for a good part of a millisecond
 * calls it first: a thousand episodes that wake up together then take their turns one after the other,
 * and the loop gets round to sockets, timers and signals in between.
 *
 * Whoever is called works on up to its next wait for the world outside before the next is called: what it
 * made on its way is garbage by then, where all that a thousand had half done would have to be kept.
 *
 * The queue belongs to the thread, as the event loop does.
 */
export function takeTurn(): Promise<void> {
  return new Promise<void>((resolve) => {
    (called === "in line" ? cutShort : line).push(resolve);
    if (isServing) return;
    isServing = true;
    callNextLater();
  });
}

/**
 * Whether there is a turn to wait for: the round is over, or what runs now was not called and others wait.
 * Where there is none, whoever goes on at once, without an `await` in between, spares itself the way
 * through the queue: `if (isTurnOver()) await takeTurn();`
 */
export function isTurnOver(): boolean {
  return isRoundOver() || (isServing && called === "no");
}

/**
 * The same for long work that can be cut anywhere, such as writing a long row: once its share of the round is over it
 * ends the round, for all.
 */
export function isShareOver(): boolean {
  isCut ||= passedMs() >= cutMs;
  return isTurnOver();
}

/** Calls one of those who wait, and the next when Node has run all that this led to, promise after promise. */
function callNext(): void {
  called = "no";
  if (isRoundOver()) {
    setImmediate(callNext);
    return;
  }
  const first = cutShort.shift();
  const next = first ?? line[nextInLine++];
  if (next === undefined) {
    line = [];
    nextInLine = 0;
    isServing = false;
    return;
  }
  if (nextInLine === longestServed) {
    line = line.slice(nextInLine);
    nextInLine = 0;
  }
  called = first === undefined ? "in line" : "first";
  next();
  // A tick that is asked for here would come before the promise that was just kept.
  queueMicrotask(callNextLater);
}

function callNextLater(): void {
  process.nextTick(callNext);
}

/** How many of the line were called before their places are cleared away. */
const longestServed = 1024;

function isRoundOver(): boolean {
  return isCut || passedMs() >= stretchMs;
}

/** Since the round's first paced work began. Several callbacks of one round, such as a thousand timers at once, share it. */
function passedMs(): number {
  if (roundStartedAt !== undefined) return performance.now() - roundStartedAt;
  roundStartedAt = performance.now();
  setImmediate(startRound);
  return 0;
}

function startRound(): void {
  roundStartedAt = undefined;
  isCut = false;
}
