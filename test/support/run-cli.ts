import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The compiled command line; `npm test` builds it first. */
export const cliFile = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));

/** The output of a command, and its end. */
export interface CliResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly start?: string;
}

/**
 * Runs `turnwright` with the arguments in a process of its own; `input` goes to its standard input. `start` is the
 * file that it is started by, beside the compiled command line.
 */
export async function runCli(
  args: readonly string[],
  { input = "", env = {}, start = "main.js" }: RunOptions = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [path.join(path.dirname(cliFile), start), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => {
    // The command may refuse its arguments before it reads.
  });
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { status, stdout, stderr };
}

/** The JSON lines of a text. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
