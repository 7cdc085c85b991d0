import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { scriptSessions } from "../../src/cli/demo/session-scripts.ts";
import { planRun } from "../../src/run/schedule/plan-run.ts";
import type { TestServerOptions } from "../../src/testing/protocol-servers/shared/server-core.ts";
import type { ServerPolicy } from "../../src/testing/index.ts";
import { startSglangTestServer, startVllmTestServer } from "../../src/testing/index.ts";
import { sessionScriptPolicy } from "../../src/testing/policies/session-script-policy.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { callCli } from "../support/call-cli.ts";
import { type CliResult, jsonLines } from "../support/run-cli.ts";
import { smallModelEndId, smallModelFolder } from "../support/small-model.ts";

let scratch = "";
let policy: ServerPolicy;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rescore-"));
  const environment = createStorefront();
  const plan = planRun(environment, {
    split: "test",
    taskIndexes: [0, 1, 2],
    sampleCount: 2,
    seed: 0,
  });
  const codec = await loadTokenCodec(smallModelFolder);
  policy = sessionScriptPolicy(
    await scriptSessions(plan, { environment, codec, mistakeRate: 0.3 }),
  );
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A server under test; `address` receives the requests. */
interface Served extends AsyncDisposable {
  readonly address: string;
}

/** Starts servers of one kind. */
interface ServerCase {
  readonly name: string;
  readonly engine: readonly string[];
  readonly start: (options: TestServerOptions) => Promise<Served>;
}

const SERVERS: readonly ServerCase[] = [
  {
    name: "sglang",
    engine: ["--engine", "sglang"],
    async start(options) {
      const server = await startSglangTestServer(options);
      return Object.assign(server, { address: server.url });
    },
  },
  ...(["generate", "completions"] as const).map((api) => ({
    name: `vllm, ${api}`,
    engine: ["--engine", "vllm"],
    async start(options: TestServerOptions) {
      const server = await startVllmTestServer({
        ...options,
        apis: [api],
        eosTokenId: smallModelEndId,
      });
      return Object.assign(server, { address: server.url });
    },
  })),
];

function rollout(
  { engine }: ServerCase,
  { address }: Served,
  { out, more = [] }: { out: string; more?: readonly string[] },
): Promise<CliResult> {
  return callCli([
    "rollout",
    "--split",
    "test",
    ...engine,
    "--url",
    address,
    "--model",
    smallModelFolder,
    "--parser",
    "qwen25",
    "--env",
    "storefront",
    "--tasks",
    "0-2",
    "--samples",
    "2",
    "--user",
    "scripted",
    "--out",
    out,
    "--quiet",
    ...more,
  ]);
}

function rescore(out: string, more: readonly string[] = []): Promise<CliResult> {
  return callCli(["verify", path.join(out, "samples.jsonl"), "--rescore", ...more]);
}

async function readSamples(out: string): Promise<readonly Sample[]> {
  const text = await readFile(path.join(out, "samples.jsonl"), "utf8");
  return jsonLines(text) as unknown as readonly Sample[];
}

/** The report's line about one file. */
interface Report {
  readonly rescore: {
    readonly tokenCount: number;
    readonly beyondTolerance: readonly Spoilt[];
  };
}

const countSampled = (samples: readonly Sample[]): number =>
  samples.flatMap(({ turns }) => turns).reduce((sum, { start, end }) => sum + end - start, 0);

test.each(SERVERS)(
  "a run on $name shows the one logprob that the server reported wrong, and no other",
  async (server) => {
    const out = path.join(scratch, `disturbed-${server.name.replaceAll(/\W+/g, "-")}`);
    const spoilt = { rolloutId: "", turnLength: 0 };
    await using served = await server.start({
      policy,
      faults: ({ routingKey = "" }, requestIndex) => {
        if (requestIndex !== 9) return undefined;
        spoilt.rolloutId = routingKey;
        return { kind: "alter", alter: (reply) => disturb(reply, spoilt) };
      },
    });
    expect(await rollout(server, served, { out })).toMatchObject({ status: 0 });
    const samples = await readSamples(out);
    const row = samples.findIndex(({ rolloutId }) => rolloutId === spoilt.rolloutId);
    const others = samples.toSpliced(row, 1);
    const othersFile = path.join(out, "others.jsonl");
    await writeFile(othersFile, others.map((sample) => `${JSON.stringify(sample)}\n`).join(""));

    const { status, stdout } = await rescore(out, [othersFile]);
    const [whole, rest] = jsonLines(stdout) as unknown as [Report, Report];
    const [found] = whole.rescore.beyondTolerance as [Spoilt];
    const tokenCount = countSampled(samples);
    expect(whole).toMatchObject({
      violations: [],
      rescore: {
        engine: server.engine[1],
        tokenCount,
        meanDifference: 0.25 / tokenCount,
        beyondToleranceCount: 1,
        beyondTolerance: [found],
        largest: found,
      },
    });
    expect(found).toMatchObject({ line: row + 1, rolloutId: spoilt.rolloutId, difference: 0.25 });
    expect(found.recorded - found.rescored).toBe(-0.25);
    const sample = samples[row];
    const turn = sample?.turns.find(({ turnIndex }) => turnIndex === found.turnIndex);
    const start = found.index - 1;
    expect(turn).toMatchObject({ start, end: start + spoilt.turnLength });
    expect(sample?.tokenIds[found.index]).toBe(found.tokenId);
    expect(sample?.logprobs[found.index]).toBe(found.recorded);
    expect(rest).toMatchObject({
      violations: [],
      rescore: { tokenCount: countSampled(others), meanDifference: 0, beyondTolerance: [] },
    });
    expect(status).toBe(1);
  },
);

test("a run on sglang scores again without a difference, but not as if at another temperature", async () => {
  const [sglang] = SERVERS as [ServerCase];
  await using served = await sglang.start({ policy });
  const out = path.join(scratch, "clean-sglang");
  expect(await rollout(sglang, served, { out })).toMatchObject({ status: 0 });
  const { status, stdout } = await rescore(out);
  expect(jsonLines(stdout)).toMatchObject([
    {
      samples: 6,
      rescore: {
        logprobConvention: "tempered",
        temperature: 1,
        skipped: [],
        meanDifference: 0,
        largest: { difference: 0 },
        beyondToleranceCount: 0,
      },
    },
  ]);
  expect(status).toBe(0);
  const warm = await rescore(out, ["--temperature", "0.7"]);
  expect([warm.status, warm.stdout]).toEqual([2, ""]);
  expect(warm.stderr).toContain("Cannot score at temperature 0.7 with sglang");
});

test("a run on vllm at another temperature scores again without a difference, its logprobs being raw", async () => {
  const [, vllm] = SERVERS as [ServerCase, ServerCase];
  await using served = await vllm.start({ policy: { ...policy, begin: answerProbes } });
  const out = path.join(scratch, "warm-vllm");
  const more = ["--temperature", "0.7"];
  expect(await rollout(vllm, served, { out, more })).toMatchObject({ status: 0 });
  const { status, stdout } = await rescore(out);
  expect(jsonLines(stdout)).toMatchObject([
    { rescore: { logprobConvention: "raw", temperature: 0.7, largest: { difference: 0 } } },
  ]);
  expect(status).toBe(0);
});

test("a run with logprobs after top-p cannot be scored again, and the error says so", async () => {
  const [, vllm] = SERVERS as [ServerCase, ServerCase];
  const options = {
    policy: { ...policy, begin: answerProbes },
    logprobsMode: "processed_logprobs",
  };
  await using served = await vllm.start(options);
  const out = path.join(scratch, "narrowed-vllm");
  expect(await rollout(vllm, served, { out, more: ["--top-p", "0.9"] })).toMatchObject({
    status: 0,
  });
  const { status, stdout, stderr } = await rescore(out);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toBe(
    "turnwright: Cannot score samples with vllm again: it reports logprobs of what --top-p 0.9 " +
      "left, which cannot be scored\n",
  );
});

interface Spoilt {
  readonly line: number;
  readonly rolloutId: string;
  readonly turnIndex: number;
  readonly index: number;
  readonly tokenId: number;
  readonly recorded: number;
  readonly rescored: number;
}

type JsonObject = Record<string, unknown>;

/** Lowers the second token's logprob in the words of any server, and notes how long the turn is. */
function disturb(reply: JsonObject, spoilt: { turnLength: number }): JsonObject {
  const copy = structuredClone(reply);
  const meta = copy["meta_info"] as JsonObject | undefined;
  if (meta !== undefined) {
    const entries = meta["output_token_logprobs"] as [number, number, null][];
    spoilt.turnLength = entries.length;
    entries[1]![0] -= 0.25;
    return copy;
  }
  const [choice] = copy["choices"] as [JsonObject];
  const { content, token_logprobs: column } = choice["logprobs"] as {
    content?: { logprob: number }[];
    token_logprobs?: number[];
  };
  spoilt.turnLength = (choice["token_ids"] as number[]).length;
  if (content !== undefined) content[1]!.logprob -= 0.25;
  if (column !== undefined) column[1]! -= 0.25;
  return copy;
}

/** The script has no turn for the requests that detect the convention. */
function answerProbes(request: Parameters<ServerPolicy["begin"]>[0]) {
  return request.routingKey === "turnwright-probe"
    ? [{ id: 7, logprob: -1 }]
    : policy.begin(request);
}
