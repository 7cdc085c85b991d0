import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createScriptedPolicy, startSglangTestServer } from "../../src/testing/index.ts";
import { runCli, type CliResult } from "../support/run-cli.ts";

/** A small one: its tokenizer is loaded in no time. */
const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

const secrets = {
  TEST_ENGINE_KEY: "sk-engine/0123+abc",
  TEST_USER_KEY: 'sk-"user"-4567-xyz',
};

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-secrets-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A server that repeats in its refusals how it was asked, as careless ones do. */
async function startEcho(forward: (request: IncomingMessage) => string | undefined) {
  const server = createServer((request, response) => {
    const target = forward(request);
    if (target !== undefined) {
      void fetch(target).then(async (reply) => {
        response.writeHead(reply.status, { "content-type": "application/json" });
        response.end(await reply.text());
      });
      return;
    }
    request.resume();
    // An empty request asks whether there is a server: the key is refused later, when it is used.
    if (request.headers["content-length"] === "2") {
      response.writeHead(400).end("{}");
      return;
    }
    const { authorization = "" } = request.headers;
    const message = `no access with ${authorization} to ${encodeURIComponent(authorization)}`;
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message, type: "auth" } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Everything that a run reports about itself, by its place. */
async function sayings(out: string, { stdout, stderr }: CliResult) {
  const files = (await readdir(out)).filter((name) => /\.(json|jsonl|md)$/.test(name));
  const texts = await Promise.all(files.map((name) => readFile(path.join(out, name), "utf8")));
  return new Map([
    ...files.map((name, at) => [name, texts[at]!] as const),
    ...Object.entries({ stdout, stderr }),
  ]);
}

/** The places of the saying that hold one of the texts. */
function placesOf(said: ReadonlyMap<string, string>, texts: readonly string[]): readonly string[] {
  return [...said]
    .filter(([, text]) => texts.some((each) => text.includes(each)))
    .map(([name]) => name);
}

const formsOf = (secret: string) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1),
  encodeURIComponent(secret),
];

const shop = ["--env", "storefront", "--tasks", "0", "--attempts", "1", "--parser", "qwen25"];

describe("a secret reaches neither the run's folder nor the terminal", () => {
  test("the engine's key, in a 401 that repeats it", async () => {
    await using engine = await startSglangTestServer({ policy: createScriptedPolicy([]) });
    await using echo = await startEcho(({ method, url = "" }) =>
      method === "GET" ? `${engine.url}${url}` : undefined,
    );
    const out = path.join(scratch, "engine");
    const printed = await runCli(
      [
        "eval",
        ...shop,
        "--user",
        "scripted",
        "--model",
        model,
        "--out",
        out,
        "--url",
        `http://127.0.0.1:${echo.port}`,
        "--api-key-env",
        "TEST_ENGINE_KEY",
      ],
      { env: secrets },
    );
    const said = await sayings(out, printed);
    expect(placesOf(said, formsOf(secrets.TEST_ENGINE_KEY))).toEqual([]);
    const places = placesOf(said, ["no access with Bearer [redacted]"]);
    expect(places).toEqual(
      expect.arrayContaining(["episodes.jsonl", "events.jsonl", "summary.json"]),
    );
    expect(printed.status).toBe(1);
  });

  test("the engine's key, if the engine refuses to be described", async () => {
    await using echo = await startEcho(() => undefined);
    const { status, stderr } = await runCli(
      [
        "rollout",
        ...shop,
        "--user",
        "scripted",
        "--model",
        model,
        "--url",
        `http://127.0.0.1:${echo.port}`,
        "--api-key-env",
        "TEST_ENGINE_KEY",
        "--out",
        path.join(scratch, "never"),
      ],
      { env: secrets },
    );
    expect(stderr).toContain("[redacted]");
    expect(formsOf(secrets.TEST_ENGINE_KEY).filter((form) => stderr.includes(form))).toEqual([]);
    expect(status).toBe(2);
  });

  test("the key of the user's model", async () => {
    await using engine = await startSglangTestServer({ policy: createScriptedPolicy([]) });
    await using echo = await startEcho(() => undefined);
    const out = path.join(scratch, "user");
    const printed = await runCli(
      [
        "rollout",
        ...shop,
        "--model",
        model,
        "--out",
        out,
        "--url",
        engine.url,
        "--user",
        "llm",
        "--user-url",
        `http://127.0.0.1:${echo.port}/v1`,
        "--user-model",
        "m",
        "--user-api-key-env",
        "TEST_USER_KEY",
      ],
      { env: secrets },
    );
    const said = await sayings(out, printed);
    expect(placesOf(said, formsOf(secrets.TEST_USER_KEY))).toEqual([]);
    const places = placesOf(said, ["no access with Bearer [redacted]"]);
    expect(places).toEqual(
      expect.arrayContaining(["episodes.jsonl", "events.jsonl", "summary.json", "stdout"]),
    );
    expect(printed.status).toBe(1);
  });

  test("the engine's key, if a custom environment repeats it", async () => {
    await using engine = await startSglangTestServer({ policy: createScriptedPolicy([]) });
    const file = path.join(scratch, "environment.mjs");
    const shopModule = new URL("../../dist/environments/storefront/index.js", import.meta.url).href;
    await writeFile(
      file,
      `import { createStorefront } from ${JSON.stringify(shopModule)};
      export function createEnvironment() {
        const shop = createStorefront();
        const open = () => { throw new Error("no access with " + process.env.TEST_ENGINE_KEY); };
        return { ...shop, open };
      }`,
    );
    const script = path.join(scratch, "script.json");
    await writeFile(script, '["Good day."]');
    const out = path.join(scratch, "environment");
    const printed = await runCli(
      [
        "eval",
        ...shop,
        "--env",
        file,
        "--split",
        "test",
        "--user",
        "scripted",
        "--user-script",
        script,
        "--model",
        model,
        "--out",
        out,
        "--url",
        engine.url,
        "--api-key-env",
        "TEST_ENGINE_KEY",
      ],
      { env: secrets },
    );
    const said = await sayings(out, printed);
    expect(placesOf(said, formsOf(secrets.TEST_ENGINE_KEY))).toEqual([]);
    const places = placesOf(said, ["no access with [redacted]"]);
    expect(places).toEqual(
      expect.arrayContaining(["episodes.jsonl", "events.jsonl", "summary.json"]),
    );
  });

  test("a key that a user says, in forks and when they are played again", async () => {
    // A word, and the end of the turn.
    const turn = { outputIds: [731, 2939] };
    await using engine = await startSglangTestServer({
      policy: createScriptedPolicy([turn, turn, turn]),
    });
    const script = path.join(scratch, "telling.json");
    await writeFile(script, JSON.stringify([`It is ${secrets.TEST_ENGINE_KEY}.`, "Bye."]));
    const [run, forks] = [path.join(scratch, "telling"), path.join(scratch, "telling-forks")];
    await runCli(
      [
        "rollout",
        ...shop,
        "--user",
        "scripted",
        "--user-script",
        script,
        "--model",
        model,
        "--url",
        engine.url,
        "--api-key-env",
        "TEST_ENGINE_KEY",
        "--max-turns",
        "2",
        "--out",
        run,
      ],
      { env: secrets },
    );
    const printed = await runCli(
      ["fork", run, "0#0", "--turn", "1", "--samples", "1", "--out", forks],
      {
        env: secrets,
      },
    );
    const said = await sayings(forks, printed);
    expect(placesOf(said, formsOf(secrets.TEST_ENGINE_KEY))).toEqual([]);
    expect(placesOf(said, ["It is [redacted]."])).toEqual(["episodes.jsonl"]);
    for (const dir of [run, forks]) {
      const again = await runCli(["replay", dir], { env: secrets });
      expect(again.stdout).toBe("1 identical, 0 differ\n");
    }
  });

  test("the password and the key in an address", async () => {
    const out = path.join(scratch, "address");
    const printed = await runCli([
      "rollout",
      ...shop,
      "--user",
      "scripted",
      "--model",
      model,
      "--out",
      out,
      "--url",
      "http://me:open%20sesame@127.0.0.1:9/?api_key=key-89012345",
    ]);
    const said = new Map(Object.entries({ stdout: printed.stdout, stderr: printed.stderr }));
    expect(placesOf(said, ["open sesame", "open%20sesame", "key-89012345"])).toEqual([]);
    expect(printed.stderr).toContain("expected http://127.0.0.1:9/ and, for an engine that needs");
    expect(printed.status).toBe(2);
    await expect(readdir(out)).rejects.toThrow("ENOENT");
  });
});
