import { createInterface } from "node:readline";

/** Reads lines of text from a person or a pipe. */
export interface LineReader {
  /**
   * Returns the next line without its end, or `null` after the end of the input. Earlier lines are
   * buffered.
   *
   * @throws the signal's reason if it is aborted. The next line then stays in the buffer.
   */
  next(options: { signal: AbortSignal }): Promise<string | null>;
}

/** Maximum number of buffered lines before the input is paused. */
const maxLinesAhead = 1000;

/** Creates a reader for a stream of text. The stream is paused while no line is requested. */
export function createLineReader(input: NodeJS.ReadableStream): LineReader {
  const reader = createInterface({ input, terminal: false });
  const ahead: string[] = [];
  let isEnded = false;
  let wake: (() => void) | undefined;
  reader.on("line", (line) => {
    ahead.push(line);
    if (ahead.length >= maxLinesAhead) reader.pause();
    wake?.();
  });
  reader.on("close", () => {
    isEnded = true;
    wake?.();
  });
  reader.pause();
  return {
    async next({ signal }) {
      signal.throwIfAborted();
      if (ahead.length === 0 && !isEnded) {
        reader.resume();
        try {
          await new Promise<void>((resolve, reject) => {
            const abandon = (): void => reject(signal.reason as Error);
            signal.addEventListener("abort", abandon, { once: true });
            wake = () => {
              signal.removeEventListener("abort", abandon);
              resolve();
            };
          });
        } finally {
          wake = undefined;
          if (!isEnded) reader.pause();
        }
      }
      return ahead.shift() ?? null;
    },
  };
}
