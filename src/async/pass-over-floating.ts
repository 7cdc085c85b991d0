import { isThrownByUs, placeOfThrow } from "../text/source-place.ts";
import { RolloutError, UsageError, describeError, isOwnBug } from "../errors.ts";
import { isRecorded, OutsideMisuse, PlaybackStop } from "../outside.ts";

/** The functions that receive reports, innermost last. */
const reporters: ((line: string) => void)[] = [];

/**
 * Keeps the process alive if foreign code (an environment, an agent, a scorer) leaves a rejected promise unhandled:
 * Node would end it, with all other episodes. Each place is reported once. An error that only our own code threw is
 * our bug and still ends the process, except errors that we pass to foreign code, such as a signal's reason:
 * foreign code must handle these.
 *
 * @param say - Gets a line with the file, the line (if known) and the remedy. Only the latest function gets
 * reports.
 * @returns stops the protection when it is disposed of.
 */
export function reportUnhandledRejections(say: (line: string) => void): Disposable {
  const reported = new Set<string>();
  const report = (line: string): void => {
    if (reported.has(line)) return;
    reported.add(line);
    say(line);
  };
  if (reporters.push(report) === 1) process.on("unhandledRejection", onRejection);
  return {
    [Symbol.dispose]() {
      reporters.splice(reporters.indexOf(report), 1);
      if (reporters.length === 0) process.off("unhandledRejection", onRejection);
    },
  };
}

function onRejection(reason: unknown): void {
  if (isOurBug(reason)) throw reason;
  reporters.at(-1)?.(
    `${placeOf(reason)}: an unhandled promise was rejected: ${describeError(reason)}; ` +
      "await it, or catch what it may throw",
  );
}

/**
 * Keeps the process alive if a foreign listener of a signal threw. Without a report function, Node prints a
 * warning, so that a program that uses the library sees the error. Our own bugs end the process.
 */
export function reportListenerError(thrown: unknown): void {
  if (isOurBug(thrown)) {
    process.nextTick(() => {
      throw thrown;
    });
    return;
  }
  const line =
    `${placeOf(thrown)}: a listener of an abort signal threw: ${describeError(thrown)}; ` +
    "catch what it may throw";
  const report = reporters.at(-1) ?? ((text) => process.emitWarning(text));
  report(line);
}

function isOurBug(thrown: unknown): boolean {
  return isOwnBug(thrown) || (isThrownByUs(thrown) && !isGivenToOthers(thrown));
}

/** The place of an error; system errors, such as a failed request, have no line. */
function placeOf(thrown: unknown): string {
  return placeOfThrow(thrown) ?? "an environment, an agent or another module of yours";
}

function isGivenToOthers(reason: unknown): boolean {
  // The reason of an abort.
  if (reason instanceof DOMException || isRecorded(reason)) return true;
  return [RolloutError, UsageError, PlaybackStop, OutsideMisuse].some(
    (kind) => reason instanceof kind,
  );
}
