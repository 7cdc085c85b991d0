import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, missingStore, startStore } from "../../src/queue/store/store-server.fixture.ts";
import { callCli } from "../support/call-cli.ts";
import { Started } from "../support/started.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
const what = [
  "--env",
  "storefront",
  "--user",
  "scripted",
  "--engine",
  "reference",
  "--model",
  model,
  "--threads",
  "1",
  "--seed",
  "7",
  "--sampling-seed",
  "7",
  "--max-turns",
  "3",
];
const scope = ["--split", "test", "--tasks", "0-5", "--samples", "2"];

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-handed-out-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const rows = async (run: string): Promise<string> =>
  await readFile(path.join(scratch, run, "samples.jsonl"), "utf8");

describe.skipIf(missingStore !== undefined)("a run over two workers on one machine", () => {
  test("equals the run of one process, and killing a worker only makes the run longer", async () => {
    const plain = await runCli([
      "rollout",
      ...what,
      ...scope,
      "--out",
      path.join(scratch, "plain"),
    ]);
    expect(plain.status, plain.stderr).toBe(0);
    await using store = await startStore();
    const shared = ["--queue", store.url, "--shared", path.join(scratch, "shared")];
    const work = ["worker", ...what, ...shared, "--concurrency", "2", "--lease", "2"];
    await using one = new Started([...work, "--name", "one"]);
    await using two = new Started([...work, "--name", "two"]);
    await using run = new Started([
      "rollout",
      ...what,
      ...scope,
      ...shared,
      "--out",
      path.join(scratch, "handed-out"),
    ]);
    await one.until("joins run");
    await two.until("joins run");
    await one.end("SIGKILL");
    const top = await runCli(["top", "--queue", store.url, "--json", "--once"]);
    expect(top.status, top.stderr).toBe(0);
    const [state] = jsonLines(top.stdout) as {
      runs: { environment: string }[];
      workers: object[];
    }[];
    expect(state!.runs.map(({ environment }) => environment)).toEqual(["storefront"]);
    expect(JSON.stringify(state!.workers)).toMatch(/"two-\w{6}"/);
    await run.until("The run is finished.");
    expect(await run.ended()).toBe(0);
    expect(await rows("handed-out")).toBe(await rows("plain"));
    const shown = run.output.split("The run is finished.")[0]!;
    expect(shown.split("\n").filter((line) => !/done · |^$/.test(line))).toEqual([]);
    const verified = await callCli(["verify", path.join(scratch, "handed-out")]);
    expect(verified.status, verified.stdout).toBe(0);
    const replayed = await callCli(["replay", path.join(scratch, "handed-out")]);
    expect(replayed.status, replayed.stdout).toBe(0);
    expect(await two.end("SIGTERM")).toBe(0);
    expect(two.output).toContain("note: drained");
  });

  test("waits for workers, says so, and takes those that are on its terms", async () => {
    await using store = await startStore();
    const queue = ["--queue", store.url];
    await using run = new Started([
      "rollout",
      ...what,
      "--tasks",
      "0",
      "--samples",
      "1",
      ...queue,
      "--out",
      path.join(scratch, "waits"),
    ]);
    await run.until("waiting: no worker is there: start one with `turnwright worker`");
    await using other = new Started([
      "worker",
      ...what.map((flag) => (flag === "3" ? "4" : flag)),
      ...queue,
      "--name",
      "other",
    ]);
    await other.until("refuses run");
    expect(other.output).toMatch(
      /refuses run [\w-]+: --max-turns differs \(here \w{12}, the run's \w{12}\)\n/,
    );
    await run.until("waiting: the only worker refuses this run; other-");
    await run.until(" says: --max-turns differs");
    await using _one = new Started(["worker", ...what, ...queue]);
    await run.until("The run is finished.");
  });

  test("ignores attempts that were played for an unwritten start with other settings", async () => {
    const out = path.join(scratch, "other-settings");
    const play = (temperature: string, to: string): string[] => [
      "rollout",
      ...what,
      "--tasks",
      "0",
      "--samples",
      "1",
      "--temperature",
      temperature,
      "--out",
      to,
    ];
    const queueId = async (): Promise<unknown> =>
      (JSON.parse(await readFile(path.join(out, "queue.json"), "utf8")) as { run: unknown }).run;
    await using store = await startStore();
    const queue = ["--queue", store.url];
    await using first = new Started([...play("1", out), ...queue]);
    await first.until("waiting: no worker is there");
    await first.end("SIGKILL");
    const firstId = await queueId();
    await using _worker = new Started(["worker", ...what, ...queue]);
    await using second = new Started([...play("0.2", out), ...queue]);
    await second.until("The run is finished.");
    expect(await second.ended()).toBe(0);
    const secondId = await queueId();
    expect(secondId).not.toBe(firstId);
    const plain = await runCli(play("0.2", path.join(scratch, "plain-other-settings")));
    expect(plain.status, plain.stderr).toBe(0);
    expect(await rows("other-settings")).toBe(await rows("plain-other-settings"));
    await using third = new Started([...play("0.2", out), ...queue]);
    expect(await third.ended(), third.output).toBe(0);
    expect(await queueId()).toBe(secondId);
  });

  test("uses TLS and a password, which no output shows", async (context) => {
    const secret = "correct-horse-battery";
    const place = (name: string): string => path.join(scratch, name);
    const made = spawnSync("openssl", [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-keyout",
      place("key.pem"),
      "-out",
      place("cert.pem"),
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=DNS:localhost",
    ]);
    if (made.status !== 0) context.skip("openssl is not installed");
    // The plain port stays for the process that starts the store; the test uses the other.
    const tlsPort = await freePort();
    const tls = ["--tls-port", String(tlsPort), "--tls-auth-clients", "no"];
    const files = ["--tls-cert-file", place("cert.pem"), "--tls-key-file", place("key.pem")];
    await using _store = await startStore([...tls, ...files, "--requirepass", secret]);
    const env = { NODE_EXTRA_CA_CERTS: place("cert.pem"), QUEUE_PASSWORD: secret };
    const queue = [
      "--queue",
      `rediss://localhost:${tlsPort}`,
      "--queue-password-env",
      "QUEUE_PASSWORD",
    ];
    await using worker = new Started(["worker", ...what, ...queue], env);
    const out = place("by-tls");
    const run = await runCli(
      ["rollout", ...what, "--tasks", "0", "--samples", "1", ...queue, "--out", out],
      { env },
    );
    expect(run.status, run.stderr).toBe(0);
    const files2 = ["run.json", "events.jsonl", "queue.json", "recording.jsonl"];
    const written = await Promise.all(files2.map((name) => readFile(path.join(out, name), "utf8")));
    expect([run.stderr, run.stdout, worker.output, ...written].join("\n")).not.toContain(secret);
    const wrong = await runCli(["top", ...queue], { env: { ...env, QUEUE_PASSWORD: "wrong" } });
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).toMatch(
      /^turnwright: Cannot reach the queue's store rediss:\/\/localhost:\d+: .*WRONGPASS/,
    );
  });
});

describe("without a queue", () => {
  test("a missing package is named, with the command that installs it", async () => {
    const hooks = path.join(scratch, "hooks.mjs");
    const loader = path.join(scratch, "loader.mjs");
    await writeFile(
      loader,
      "export async function resolve(name, context, next) {\n" +
        '  if (name !== "bullmq") return await next(name, context);\n' +
        '  throw Object.assign(new Error("absent"), { code: "ERR_MODULE_NOT_FOUND" });\n}\n',
    );
    await writeFile(
      hooks,
      `import { register } from "node:module";\nregister(${JSON.stringify(`file://${loader}`)});\n`,
    );
    const env = { NODE_OPTIONS: `--import=file://${hooks}` };
    const top = await runCli(["top", "--queue", "redis://127.0.0.1:1"], { env });
    expect(top).toEqual({
      status: 2,
      stdout: "",
      stderr:
        "turnwright: Cannot use --queue: it needs the packages bullmq and ioredis, install them with " +
        "`npm install bullmq ioredis`: absent\n",
    });
  });

  test("a malformed value is refused", async () => {
    const cases: readonly (readonly [readonly string[], string])[] = [
      [["top"], "Missing --queue: the Valkey or Redis that attempts travel by"],
      [["worker", ...what], "Missing --queue: the Valkey or Redis that attempts come from"],
      [["rollout", ...what, "--shared", "s"], "Cannot use --shared without --queue"],
      [
        ["top", "--queue", "http://127.0.0.1"],
        "Cannot use --queue http://127.0.0.1: expected redis://host:6379 or, with TLS, rediss://host:6379",
      ],
      [
        ["top", "--queue", "redis://:hunter2@127.0.0.1"],
        "Cannot use --queue redis://127.0.0.1: it holds a password, expected the name of a variable that holds it in --queue-password-env",
      ],
      ...["/runs", "/1?password=hunter2", "/#1"].map((rest): [readonly string[], string] => [
        ["top", "--queue", `redis://127.0.0.1:6379${rest}`],
        "Cannot use --queue redis://127.0.0.1:6379: the path is not the number of a database, expected such as redis://host:6379 or redis://host:6379/1",
      ]),
    ];
    for (const [args, expected] of cases) {
      const { status, stderr } = await callCli(args);
      expect({ status, stderr }).toEqual({ status: 2, stderr: `turnwright: ${expected}\n` });
    }
  });
});
