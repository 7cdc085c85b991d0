import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import path from "node:path";
import { cliFile, type CliResult } from "./run-cli.ts";

const commandLine = pathToFileURL(path.join(path.dirname(cliFile), "run-command-line.js")).href;

/** The last call, of which the next one waits for the end: standard output is the process's. */
let previous: Promise<unknown> = Promise.resolve();

interface CallOptions {
  readonly input?: string;
  /** Variables of the environment while it runs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/**
 * Runs the compiled `turnwright` within this process, one call after another, like `runCli()` but
 * without the start of a process, which is most of the cost of a small command. Not for tests of
 * the process itself: signals, loaded modules, broken streams, secrets (which a process keeps),
 * unawaited promises, and modules that change between calls.
 */
export async function callCli(
  args: readonly string[],
  options: CallOptions = {},
): Promise<CliResult> {
  const result = previous.then(() => call(args, options));
  previous = result.catch(() => {});
  return await result;
}

async function call(
  args: readonly string[],
  { input = "", env = {}, cwd }: CallOptions,
): Promise<CliResult> {
  const { runCommandLine } = (await import(commandLine)) as {
    runCommandLine: (args: readonly string[]) => Promise<void>;
  };
  const [stdout, stderr] = [new Collected(), new Collected()];
  const before = { argv: process.argv, exitCode: process.exitCode, cwd: process.cwd() };
  if (cwd !== undefined) process.chdir(cwd);
  const variables = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  const streams = {
    stdin: Readable.from(input === "" ? [] : [Buffer.from(input)], { objectMode: false }),
    stdout,
    stderr,
  };
  const restoreStreams = Object.entries(streams).map(([name, stream]) => replace(name, stream));
  const listeners = signals.map((signal) => process.listeners(signal));
  process.argv = [process.execPath, cliFile, ...args];
  process.exitCode = undefined;
  try {
    await runCommandLine(args);
    return {
      status: exitStatus(),
      stdout: stdout.text(),
      stderr: stderr.text(),
    };
  } finally {
    for (const restore of restoreStreams) restore();
    for (const [name, value] of variables) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    process.argv = before.argv;
    process.exitCode = before.exitCode;
    if (cwd !== undefined) process.chdir(before.cwd);
    signals.forEach((signal, at) => {
      for (const listener of process.listeners(signal)) {
        if (!listeners[at]!.includes(listener)) process.off(signal, listener);
      }
    });
  }
}

/** The exit status of the process. */
function exitStatus(): number {
  return Number(process.exitCode ?? 0);
}

/** The listeners that a command adds until its process ends. */
const signals = ["SIGINT", "SIGTERM"] as const;

function replace(name: string, stream: unknown): () => void {
  const own = Object.getOwnPropertyDescriptor(process, name)!;
  Object.defineProperty(process, name, { ...own, get: () => stream });
  return () => Object.defineProperty(process, name, own);
}

/** Keeps the written bytes: a piece may end within a character. */
class Collected extends Writable {
  readonly #pieces: Buffer[] = [];

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#pieces.push(piece);
    done();
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString("utf8");
  }
}
