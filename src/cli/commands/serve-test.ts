import { type Command, InvalidArgumentError, Option } from "commander";
import {
  startTestServer,
  testServerProtocols,
} from "../../testing/protocol-servers/start-test-server.ts";
import { writeError, writeOut } from "../write-out.ts";

interface ServeFlags {
  readonly protocol: string;
  readonly port: number;
  readonly policy: string;
  readonly policyOptions: string;
  readonly options: string;
  readonly workers?: string;
}

/**
 * `turnwright serve-test`: starts a server with the protocol of an inference server, without a
 * model.
 */
export function defineServeTest(command: Command): void {
  command
    .description(
      "Speaks an inference server's protocol, faults included, and samples what a policy says: to try " +
        'an environment, a trainer or a client without a GPU. Prints {"url": …} when it listens; ends on ' +
        "Ctrl-C. JSON may be @FILE.",
    )
    .addOption(
      new Option("--protocol <name>", "server to play (default: sglang)").choices(
        testServerProtocols,
      ),
    )
    .addOption(
      new Option("--port <n>", "where it listens; 0: any free port (default: 30000)").argParser(
        readPort,
      ),
    )
    .option(
      "--policy <name>",
      "seeded, echo, scripted, text, or a module that exports createPolicy(options) (default: seeded)",
    )
    .option(
      "--policy-options <json>",
      'what the policy is made with; text: {"turns": ["…"], "modelDir": "…"}',
    )
    .option(
      "--options <json>",
      "the server's: tokenLatencyMs, faults and the others of its start function",
    )
    .option("--workers <urls>", "be a router in front of these servers instead, as SGLang's is")
    .action(async (flags: Partial<ServeFlags>) => {
      const server = await startTestServer({
        protocol: flags.protocol ?? "sglang",
        port: flags.port ?? 30_000,
        policy: flags.policy ?? "seeded",
        policyOptions: flags.policyOptions ?? "{}",
        options: flags.options ?? "{}",
        workers: flags.workers?.split(","),
      });
      await writeOut(`${JSON.stringify({ url: server.url })}\n`);
      writeError("It samples from a script and has no model. Ctrl-C ends it.\n");
      await interrupted();
      await server.close();
    });
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("expected a port, 0 to 65535");
}

/** Resolves at Ctrl-C or SIGTERM. */
async function interrupted(): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
