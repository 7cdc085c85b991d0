/** Time limit in milliseconds for work that takes turns (see `takeTurn()`), in one round of the event loop. */
const stretchMs = 3;

/**
 * Time in milliseconds after which work that can be divided ends the round. The rest of `stretchMs` is for garbage
 * collection and for work that cannot be divided.
 */
const cutMs = 2;

/** Callers that wait for their first turn or lost a turn twice. */
let line: (() => void)[] = [];
/** The index of the next caller in `line`. */
let nextInLine = 0;
/** Callers that lost their turn when the round ended. They come first in the next round. */
let cutShort: (() => void)[] = [];
/** True if the next caller is already scheduled, in this round or the next. */
let isServing = false;
/**
 * The origin of the running work: `no` if it is not from this queue, `in line` if it is from
 * `line`, `first` if it is from `cutShort`. Work from `line` that loses its turn moves to
 * `cutShort`.
 */
let called: "no" | "in line" | "first" = "no";
/** The time at which work first took a turn in this round; `undefined` before that. */
let roundStartedAt: number | undefined;
/** True if the round was ended early. */
let isCut = false;

/**
 * Waits for a turn on the event loop. Call it before work of a good part of a millisecond. If a thousand episodes
 * wake up together, they then take turns, and the loop handles sockets, timers and signals in between.
 *
 * A caller works up to its next wait for external input before the next caller starts. Its temporary objects are
 * garbage by then; with a thousand callers half done, all of them would stay alive.
 *
 * Each thread has one queue, as it has one event loop.
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
 * True if the caller must wait: the round is over, or the running work is not from the queue and others wait. If false,
 * continue immediately without an `await`: `if (isTurnOver()) await takeTurn();`
 */
export function isTurnOver(): boolean {
  return isRoundOver() || (isServing && called === "no");
}

/**
 * True if work must wait that can be divided anywhere, such as writing a long row. Once its share
 * of the round is used up, it ends the round for all callers.
 */
export function isShareOver(): boolean {
  isCut ||= passedMs() >= cutMs;
  return isTurnOver();
}

/** Calls the next waiting caller, and another one after Node has run all promise reactions of its work. */
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
  // A tick requested here would run before the reactions of the promise that was just resolved.
  queueMicrotask(callNextLater);
}

function callNextLater(): void {
  process.nextTick(callNext);
}

/** The number of served entries in `line` after which they are removed. */
const longestServed = 1024;

function isRoundOver(): boolean {
  return isCut || passedMs() >= stretchMs;
}

/**
 * Returns the milliseconds since work first took a turn in this round of the event loop. All callbacks of the round
 * share this time, even those of a thousand timers.
 */
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
