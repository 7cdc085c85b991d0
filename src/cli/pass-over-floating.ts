import { describeError } from "../errors.ts";
import { placeOfThrow } from "../environment/source-place.ts";

/**
 * Keeps a run going where a promise that an environment's code never awaits is rejected: Node would end the
 * process, and with it every other episode. Each place is told of once. A rejection that no code but ours
 * has a part in is a bug of ours, and ends the process as before.
 *
 * @param say - Gets a line with the file, the line and what to do.
 * @returns what ends it when it is disposed of.
 */
export function passOverFloating(say: (line: string) => void): Disposable {
  const told = new Set<string>();
  const onRejection = (reason: unknown): void => {
    const place = placeOfThrow(reason);
    if (place === undefined) throw reason;
    if (told.has(place)) return;
    told.add(place);
    say(
      `${place}: a promise that nobody awaits was rejected: ${describeError(reason)}; ` +
        "await it, or catch what it may throw",
    );
  };
  process.on("unhandledRejection", onRejection);
  return { [Symbol.dispose]: () => process.off("unhandledRejection", onRejection) };
}
