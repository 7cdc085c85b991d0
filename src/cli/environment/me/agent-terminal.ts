import { createInterface } from "node:readline";
import { createLineReader } from "../../../user/line-reader.ts";

/** The lines of a person at a terminal, or of a pipe. */
export interface AgentTerminal extends Disposable {
  /** Prints the prompt and returns the next line, or `null` after the end of the input. */
  next(): Promise<string | null>;
}

/** A stream that may be a terminal. */
type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

const prompt = "> ";

/**
 * Opens the input of a person. At a terminal, the line can be edited, Tab completes words, and Ctrl-C ends the input as
 * Ctrl-D does. Lines of a pipe are printed, so that the output shows the complete conversation.
 *
 * @param words - The words that Tab completes at the start of a line.
 */
export function openAgentTerminal(
  words: readonly string[],
  { input, output }: { readonly input: Input; readonly output: NodeJS.WritableStream },
): AgentTerminal {
  return input.isTTY === true
    ? openTerminal(words, { input, output })
    : openPipe({ input, output });
}

function openPipe({
  input,
  output,
}: {
  readonly input: Input;
  readonly output: NodeJS.WritableStream;
}): AgentTerminal {
  const reader = createLineReader(input);
  const { signal } = new AbortController();
  return {
    async next() {
      const line = await reader.next({ signal });
      output.write(line === null ? "\n" : `${prompt}${line}\n`);
      return line;
    },
    [Symbol.dispose]: () => void input.pause(),
  };
}

function openTerminal(
  words: readonly string[],
  { input, output }: { readonly input: Input; readonly output: NodeJS.WritableStream },
): AgentTerminal {
  const reader = createInterface({
    input,
    output,
    prompt,
    completer: (line: string) => completionsOf(line, words),
  });
  const lines = reader[Symbol.asyncIterator]();
  reader.on("SIGINT", () => reader.close());
  return {
    async next() {
      reader.prompt();
      const { done, value } = await lines.next();
      return done === true ? null : value;
    },
    [Symbol.dispose]: () => reader.close(),
  };
}

/** Returns the words that start like the line, and the line, as `node:readline` expects them. */
export function completionsOf(line: string, words: readonly string[]): [string[], string] {
  return [words.filter((word) => word.startsWith(line)), line];
}
