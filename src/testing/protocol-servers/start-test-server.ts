import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { UsageError } from "../../errors.ts";
import { createRenderer } from "../../renderer/create-renderer.ts";
import { createEchoPolicy } from "../policies/echo-policy.ts";
import { startLlamaCppTestServer } from "./llama-cpp/llama-cpp-test-server.ts";
import { createScriptedPolicy } from "../policies/scripted-policy.ts";
import { createSeededPolicy } from "../policies/seeded-policy.ts";
import type { ServerPolicy } from "../policies/server-policy.ts";
import type { TestServerOptions } from "./shared/server-core.ts";
import { startSglangTestRouter } from "./sglang/router/sglang-test-router.ts";
import { startSglangTestServer } from "./sglang/sglang-test-server.ts";
import { createTextPolicy } from "../policies/text-policy.ts";
import { startVllmTestServer } from "./vllm/vllm-test-server.ts";

/** The protocols of the test servers. */
export const testServerProtocols = ["sglang", "vllm", "llama-cpp"] as const;

/**
 * The command-line options of a test server. An option with JSON is a text, or `@` and a file name.
 */
interface StartOptions {
  readonly protocol: string;
  /** The port; 0: any free port. */
  readonly port: number;
  /** `seeded`, `echo`, `scripted`, `text`, or a module that exports `createPolicy(options)`. */
  readonly policy: string;
  /** The policy's options as JSON. */
  readonly policyOptions: string;
  /** Further options of the server's start function, as JSON. */
  readonly options: string;
  /** The addresses of servers. If given, the process is a router for them. */
  readonly workers?: readonly string[] | undefined;
}

/** A running server. */
interface RunningTestServer {
  readonly url: string;
  close(): Promise<void>;
}

type Start = (options: TestServerOptions) => Promise<RunningTestServer>;

const starts: Readonly<Record<string, Start>> = {
  sglang: startSglangTestServer,
  vllm: startVllmTestServer,
  "llama-cpp": startLlamaCppTestServer,
} satisfies Record<(typeof testServerProtocols)[number], Start>;

/**
 * Starts a test server from its command-line options.
 * @throws UsageError for an unknown protocol or policy, for invalid JSON, and for a port in use.
 */
export async function startTestServer(given: StartOptions): Promise<RunningTestServer> {
  const { protocol, port, policy, policyOptions, options, workers } = given;
  const start = starts[protocol];
  if (start === undefined) {
    throw new UsageError(
      `Cannot speak ${protocol}: expected --protocol to be one of ${testServerProtocols.join(", ")}`,
    );
  }
  const further = await readJson("--options", options);
  if (typeof further !== "object" || further === null || Array.isArray(further)) {
    throw new UsageError("Cannot read --options: expected one JSON object");
  }
  const made = workers === undefined ? await loadPolicy(policy, policyOptions) : undefined;
  try {
    if (made === undefined) {
      return await startSglangTestRouter({ ...further, port, workers: workers ?? [] });
    }
    return await start({ ...made, ...further, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new UsageError(
      `Cannot listen at port ${port}: it is taken, expected a free one such as --port 0`,
    );
  }
}

/** The function of a policy module that creates the policy. */
type CreatePolicy = (options: unknown) => ServerPolicy | Promise<ServerPolicy>;

/** Options of a server that depend on its policy. */
interface PolicyParts {
  readonly policy: ServerPolicy;
  /**
   * Ids that end a turn. The real llama.cpp server reads them from its model, which the test server
   * does not have.
   */
  readonly endTokenIds?: readonly number[];
}

async function loadPolicy(name: string, given: string): Promise<PolicyParts> {
  const options = await readJson("--policy-options", given);
  switch (name) {
    case "seeded":
      return { policy: createSeededPolicy(options as Parameters<typeof createSeededPolicy>[0]) };
    case "echo":
      return { policy: createEchoPolicy(options as Parameters<typeof createEchoPolicy>[0]) };
    case "scripted":
      return {
        policy: createScriptedPolicy(options as Parameters<typeof createScriptedPolicy>[0]),
      };
    case "text":
      return await loadTextPolicy(options);
    default: {
      const url = pathToFileURL(path.resolve(name)).href;
      const { createPolicy } = (await import(url).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
        throw new UsageError(
          `Cannot use ${name} as policy: expected seeded, echo, scripted, text, or a module that is there`,
        );
      })) as { createPolicy?: CreatePolicy };
      if (typeof createPolicy !== "function") {
        throw new UsageError(`Cannot use ${name} as policy: expected it to export createPolicy()`);
      }
      return { policy: await createPolicy(options) };
    }
  }
}

/** Creates a policy from the texts of all turns, with the tokens of a model folder. */
async function loadTextPolicy(options: unknown): Promise<PolicyParts> {
  const { turns, otherwise, modelDir } = (options ?? {}) as Readonly<Record<string, unknown>>;
  const isRight =
    Array.isArray(turns) &&
    turns.every((text) => typeof text === "string") &&
    typeof modelDir === "string" &&
    (otherwise === undefined || typeof otherwise === "string");
  if (!isRight) {
    throw new UsageError(
      'Cannot make the policy "text": expected --policy-options {"turns": ["…"], "modelDir": "…"}',
    );
  }
  const renderer = await createRenderer({ modelDir });
  const policy = await createTextPolicy(turns, {
    renderer,
    ...(otherwise !== undefined && { otherwise }),
  });
  return { policy, endTokenIds: renderer.stopTokenIds };
}

/** Parses an option with JSON, or reads the file after an `@`. */
async function readJson(flag: string, given: string): Promise<unknown> {
  const text = given.startsWith("@") ? await readFile(given.slice(1), "utf8") : given;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`Cannot read ${flag}: expected JSON (${error.message})`);
  }
}
