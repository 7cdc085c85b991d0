/**
 * A test server as a process: SGLang's by default. Prints one line of JSON, `{"url": …}`, when it
 * listens. Ends when its standard input closes, and on SIGTERM. `spawnTestServer()` starts
 * it. For use in a terminal, see `turnwright serve-test`.
 */
import { parseArgs } from "node:util";
import { describeError } from "../../errors.ts";
import { startTestServer } from "./start-test-server.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      protocol: { type: "string", default: "sglang" },
      port: { type: "string", default: "0" },
      policy: { type: "string", default: "seeded" },
      "policy-options": { type: "string", default: "{}" },
      options: { type: "string", default: "{}" },
      workers: { type: "string" },
    },
  });
  const server = await startTestServer({
    protocol: values.protocol,
    port: Number(values.port),
    policy: values.policy,
    policyOptions: values["policy-options"],
    options: values.options,
    workers: values.workers?.split(","),
  });
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
