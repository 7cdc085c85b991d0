import { isThrownByUs, placeOfThrow } from "../text/source-place.ts";
import { RolloutError, UsageError, describeError, isOwnBug } from "../errors.ts";
import { isRecorded, OutsideMisuse, PlaybackStop } from "../outside.ts";

/** Who is told, innermost last. */
const hearers: ((line: string) => void)[] = [];

/**
 * Keeps the process going where a promise that somebody else's code (an environment, an agent, a scorer) never
 * awaits is rejected: Node would end it, and with it every other episode. Each place is told of once. What our
 * own code threw, and nobody else's had a part in, is a bug of ours, and ends the process as before; but what it
 * gives others in an answer's place, such as the reason of a signal, is theirs to await.
 *
 * @param say - Gets a line with the file and the line, where these are known, and what to do. Where one that
 *   was made later is there still, that is told instead.
 * @returns what ends it when it is disposed of.
 */
export function passOverFloating(say: (line: string) => void): Disposable {
  const told = new Set<string>();
  const hear = (line: string): void => {
    if (told.has(line)) return;
    told.add(line);
    say(line);
  };
  if (hearers.push(hear) === 1) process.on("unhandledRejection", onRejection);
  return {
    [Symbol.dispose]() {
      hearers.splice(hearers.indexOf(hear), 1);
      if (hearers.length === 0) process.off("unhandledRejection", onRejection);
    },
  };
}

function onRejection(reason: unknown): void {
  if (isOurBug(reason)) throw reason;
  hearers.at(-1)?.(
    `${placeOf(reason)}: a promise that nobody awaits was rejected: ${describeError(reason)}; ` +
      "await it, or catch what it may throw",
  );
}

/**
 * Keeps the process going where somebody else's listener of a signal threw. Where nobody hears of it, Node warns
 * of it: a program that calls us is told, too. A bug of ours ends the process.
 */
export function passOverThrown(thrown: unknown): void {
  if (isOurBug(thrown)) {
    process.nextTick(() => {
      throw thrown;
    });
    return;
  }
  const line =
    `${placeOf(thrown)}: a listener of an abort signal threw: ${describeError(thrown)}; ` +
    "catch what it may throw";
  const hear = hearers.at(-1) ?? ((text) => process.emitWarning(text));
  hear(line);
}

function isOurBug(thrown: unknown): boolean {
  return isOwnBug(thrown) || (isThrownByUs(thrown) && !isGivenToOthers(thrown));
}

/** What the system throws, such as a request that failed, has no line of anybody's. */
function placeOf(thrown: unknown): string {
  return placeOfThrow(thrown) ?? "an environment, an agent or another module of yours";
}

function isGivenToOthers(reason: unknown): boolean {
  // An abort's reason.
  if (reason instanceof DOMException || isRecorded(reason)) return true;
  return [RolloutError, UsageError, PlaybackStop, OutsideMisuse].some(
    (kind) => reason instanceof kind,
  );
}
