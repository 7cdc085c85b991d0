/**
 * A test server as a process of its own: SGLang's unless told otherwise. Prints one line of JSON, `{"url": …}`, when it
 * listens, and ends when its standard input closes or on SIGTERM.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { UsageError, describeError } from "../errors.ts";
import { echoPolicy } from "./echo-policy.ts";
import { startLlamaCppTestServer } from "./llama-cpp-test-server.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import { seededPolicy } from "./seeded-policy.ts";
import type { ServerPolicy } from "./server-policy.ts";
import type { TestServerOptions } from "./server/server-core.ts";
import { startSglangTestRouter } from "./sglang-test-router.ts";
import { startSglangTestServer } from "./sglang-test-server.ts";
import { startVllmTestServer } from "./vllm-test-server.ts";

const USAGE = `usage: sglang-test-server-main [options]
  --protocol NAME          sglang (default), vllm or llama-cpp
  --port N                 default 0: any free port
  --policy NAME|PATH       seeded (default), echo, scripted, or a module that exports
                           createPolicy(options)
  --policy-options JSON    what the policy is made with
  --options JSON           further options of the server's start function: faults, tokenLatencyMs, …
  --workers URL,URL        be a router in front of these servers instead`;

type Start = (options: TestServerOptions) => Promise<{ url: string; close: () => Promise<void> }>;

const STARTS: Readonly<Record<string, Start>> = {
  sglang: startSglangTestServer,
  vllm: startVllmTestServer,
  "llama-cpp": startLlamaCppTestServer,
};

/** Makes a policy, in the module that a path names. */
type CreatePolicy = (options: unknown) => ServerPolicy | Promise<ServerPolicy>;

async function loadPolicy(name: string, optionsText: string): Promise<ServerPolicy> {
  const options = parseJson("--policy-options", optionsText);
  switch (name) {
    case "seeded":
      return seededPolicy(options as Parameters<typeof seededPolicy>[0]);
    case "echo":
      return echoPolicy(options as Parameters<typeof echoPolicy>[0]);
    case "scripted":
      return scriptedPolicy(options as Parameters<typeof scriptedPolicy>[0]);
    default: {
      const url = pathToFileURL(path.resolve(name)).href;
      const { createPolicy } = (await import(url)) as { createPolicy?: CreatePolicy };
      if (typeof createPolicy !== "function") {
        throw new UsageError(`Cannot use ${name} as policy: expected it to export createPolicy()`);
      }
      return createPolicy(options);
    }
  }
}

function parseJson(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`Cannot read ${flag}: expected JSON`, { cause: error });
  }
}

/** JSON, or the name of a file that holds it, after an `@`. */
async function readValue(text: string): Promise<string> {
  return text.startsWith("@") ? readFile(text.slice(1), "utf8") : text;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      protocol: { type: "string", default: "sglang" },
      port: { type: "string", default: "0" },
      policy: { type: "string", default: "seeded" },
      "policy-options": { type: "string", default: "{}" },
      options: { type: "string", default: "{}" },
      workers: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const port = Number(values.port);
  const start = STARTS[values.protocol];
  if (start === undefined) {
    const names = Object.keys(STARTS).join(", ");
    throw new UsageError(
      `Cannot speak ${values.protocol}: expected --protocol to be one of ${names}`,
    );
  }
  const further = parseJson("--options", await readValue(values.options)) as object;
  const server =
    values.workers === undefined
      ? await start({
          ...(further as TestServerOptions),
          port,
          policy: await loadPolicy(values.policy, await readValue(values["policy-options"])),
        })
      : await startSglangTestRouter({ ...further, port, workers: values.workers.split(",") });
  process.stdout.write(`${JSON.stringify({ url: server.url })}\n`);
  const stop = (): void => {
    void server.close().then(() => process.exit(0));
  };
  process.stdin.resume();
  process.stdin.once("end", stop);
  process.stdin.once("close", stop);
  process.once("SIGTERM", stop);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 2;
}
