import { RolloutError } from "../errors.ts";
import { callThrough, type Outside } from "../outside.ts";
import type { CallQueue } from "./chat/call-queue.ts";
import { createCallQueue } from "./chat/call-queue.ts";
import type { LineReader } from "./line-reader.ts";
import { createLineReader } from "./line-reader.ts";
import { textOfLine, type User, type UserLine, type UserSession } from "./user.ts";

/** Settings of `humanUser()`. */
interface HumanUserOptions {
  /** The stream that the person writes to, such as `process.stdin`. */
  readonly input: NodeJS.ReadableStream;
  /** The stream that the person reads, such as `process.stdout`. */
  readonly output: NodeJS.WritableStream;
}

/**
 * Creates a user that a person plays at a terminal. The person sees the task's instruction and the
 * agent's messages, and answers line by line. Concurrent conversations take turns.
 *
 * `begin()` and `reply()` throw RolloutError `user/left` after the end of the input.
 */
export function humanUser({ input, output }: HumanUserOptions): User {
  const turns = createCallQueue({
    maxConcurrent: 1,
    maxWaiting: Infinity,
    onFull: () => new RolloutError("user/overloaded", "Cannot wait for the terminal"),
  });
  let reader: LineReader | undefined;
  const terminal: Terminal = {
    turns,
    write: (text) => void output.write(text),
    next: (options) => (reader ??= createLineReader(input)).next(options),
  };
  return {
    strategy: "human",
    repeatable: true,
    open: ({ id, instruction }, { outside = callThrough }) =>
      openAt(terminal, { id, instruction, outside }),
  };
}

interface Terminal extends LineReader {
  readonly turns: CallQueue;
  write(text: string): void;
}

function openAt(
  terminal: Terminal,
  task: { readonly id: string; readonly instruction: string; readonly outside: Outside },
): UserSession {
  const ask = (text: string, signal: AbortSignal): Promise<UserLine> =>
    task.outside("line", async () => await askPerson(text, signal));
  const askPerson = (text: string, signal: AbortSignal): Promise<UserLine> =>
    terminal.turns.run(
      async () => {
        terminal.write(`\n[${task.id}]\n${withoutControls(text)}\n`);
        return await readAnswer(terminal, { id: task.id, signal });
      },
      { signal },
    );
  const rules =
    "You play this customer. When nothing is left to say, write /leave, with or without a last " +
    "line after it.";
  return {
    begin: async ({ signal }) => textOfLine(await ask(`${rules}\n\n${task.instruction}`, signal)),
    reply: (agentText, { signal }) => ask(`Agent: ${agentText}`, signal),
    usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
  };
}

async function readAnswer(
  terminal: Terminal,
  { id, signal }: { id: string; signal: AbortSignal },
): Promise<UserLine> {
  for (;;) {
    terminal.write("> ");
    const line = await terminal.next({ signal });
    if (line === null) {
      throw new RolloutError(
        "user/left",
        `Cannot answer for task ${id}: the input has ended, expected a line`,
      );
    }
    // Ignores an empty line, which is usually a mistake.
    if (line.trim() !== "") return readLeave(line);
  }
}

function readLeave(line: string): UserLine {
  const [command, farewell = ""] = /^\s*\/leave(?:\s+(.*))?$/.exec(line) ?? [];
  return command === undefined ? line : { text: farewell.trim(), leaves: true };
}

/**
 * Removes control characters, because the agent's text is untrusted and could control the terminal.
 */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "");
}
