import { createInterface } from "node:readline";

/** Reads lines of text as a person, or a pipe, gives them. */
export interface LineReader {
  /**
   * The next line without its end, or `null` where the input has ended. Lines that come before they
   * are asked for are kept.
   *
   * @throws the signal's reason where the signal is aborted; the next line then stays for later.
   */
  next(options: { signal: AbortSignal }): Promise<string | null>;
}

/** Lines given ahead of time beyond this number pause the input. */
const maxLinesAhead = 1000;

/** Starts to read a stream of text; while nobody asks for a line, the stream is paused. */
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
