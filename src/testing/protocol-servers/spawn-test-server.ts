import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { UsageError } from "../../errors.ts";
import { packageFile } from "../../files/package-file.ts";
import { systemClock } from "../../async/clock.ts";

/** Settings of `spawnTestServer()`. They are passed to the process as JSON. */
export interface SpawnedServerOptions {
  /** The server to imitate. Default `sglang`. */
  readonly protocol?: "sglang" | "vllm" | "llama-cpp";
  /** `seeded` (default), `echo`, `scripted`, or a JavaScript module that exports `createPolicy(options)`. */
  readonly policy?: string;
  /** The options of the policy. */
  readonly policyOptions?: unknown;
  /** Further options of the server's start function, or of `startSglangTestRouter()` with `workers`. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The addresses of servers. If given, the process is a router for them. */
  readonly workers?: readonly string[];
  /** The port. Default 0: any free port, which stays the same after a restart. */
  readonly port?: number;
  /** The time limit for starting the process, in milliseconds. Default 20 000. */
  readonly startMs?: number;
}

/** A test server in its own process. */
export interface SpawnedServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The id of the running process. `undefined` if none is running. */
  readonly pid: number | undefined;
  /** Kills the process, as in a crash. */
  kill(): Promise<void>;
  /** Restarts the server on the same port. Its counts and queues are lost. */
  restart(): Promise<void>;
  /** Ends the process normally. */
  close(): Promise<void>;
}

/**
 * The compiled program of a test server. This module may run from its source, but a Node process
 * needs the compiled file.
 */
export const TEST_SERVER_PROGRAM = packageFile(
  "dist/src/testing/protocol-servers/test-server-main.js",
);

/**
 * Starts a test server as a process that can be killed and restarted during a run. The process ends
 * with this one.
 * @throws UsageError if the program is not built, or if it ends before it listens.
 */
export async function spawnTestServer(options: SpawnedServerOptions = {}): Promise<SpawnedServer> {
  let child: ChildProcess | undefined;
  let url: string;
  ({ child, url } = await start(options, options.port ?? 0));
  const port = Number(new URL(url).port);

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child;
    child = undefined;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, "exit");
    ending.kill(signal);
    await exited;
  }

  const close = (): Promise<void> => end("SIGTERM");
  return {
    url,
    port,
    get pid() {
      return child?.pid;
    },
    kill: () => end("SIGKILL"),
    async restart() {
      await end("SIGKILL");
      ({ child } = await start(options, port));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function start(
  { protocol, policy, policyOptions, options, workers, startMs = 20_000 }: SpawnedServerOptions,
  port: number,
): Promise<{ child: ChildProcess; url: string }> {
  await assertBuilt();
  const flags: [flag: string, value: string | undefined][] = [
    ["--protocol", protocol],
    ["--port", String(port)],
    ["--policy", policy],
    ["--policy-options", policyOptions === undefined ? undefined : JSON.stringify(policyOptions)],
    ["--options", options === undefined ? undefined : JSON.stringify(options)],
    ["--workers", workers?.join(",")],
  ];
  const given = flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  const child = spawn(process.execPath, [TEST_SERVER_PROGRAM, ...given], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-2_000);
  });
  const callOff = systemClock.after(startMs, () => child.kill("SIGKILL"));
  let stdout = "";
  for await (const text of child.stdout.setEncoding("utf8")) {
    stdout += text;
    if (stdout.includes("\n")) break;
  }
  callOff();
  if (stdout.includes("\n")) {
    const { url } = JSON.parse(stdout) as { url: string };
    return { child, url };
  }
  throw new UsageError(
    `Cannot start the test server: the process ended before it listened (${stderr.trim()})`,
  );
}

async function assertBuilt(): Promise<void> {
  try {
    await access(TEST_SERVER_PROGRAM);
  } catch (error) {
    throw new UsageError(
      `Cannot start the test server: ${TEST_SERVER_PROGRAM} is not there, ` +
        "expected a build; run `npm run build`",
      { cause: error },
    );
  }
}
