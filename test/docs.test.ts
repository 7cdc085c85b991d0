import { execFile } from "node:child_process";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createStorefront, demonstrate } from "../environments/storefront/index.ts";
import { trace } from "@opentelemetry/api";
import type * as answering from "../examples/answer-requests.ts";
import type * as climbing from "../examples/climb-tasks.ts";
import type * as errand from "../examples/errand.ts";
import type * as measuring from "../examples/measure-desk.ts";
import type * as rolling from "../examples/first-rollout.ts";
import type * as byHand from "../examples/play-lamps-by-hand.ts";
import type * as example from "../examples/play-one-episode.ts";
import type * as judging from "../examples/judged-letters.ts";
import type * as rescoring from "../examples/rescore-run.ts";
import type * as distilling from "../examples/reverse-kl.ts";
import type * as streaming from "../examples/stream-groups.ts";
import type * as training from "../examples/train-on-desk.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import {
  createScriptedPolicy,
  startSglangTestServer,
  createTextPolicy,
} from "../src/testing/index.ts";
import { checkEnvironment } from "../src/api/check/check-environment.ts";
import type { Environment } from "../src/environment/environment.ts";
import type { Episode } from "../src/episode/episode.ts";
import { playActions } from "../src/environment/play-actions.ts";
import type * as engines from "../src/engine/index.ts";
import type * as renderers from "../src/renderer/index.ts";
import type * as users from "../src/user/index.ts";
import { rollout } from "../src/api/rollout.ts";
import { openRecordedRun } from "../src/composition/open-replay.ts";
import { verifyFile } from "../src/trajectory/verify-file.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { smallModelFolder } from "./support/small-model.ts";
import { callCli } from "./support/call-cli.ts";
import { jsonLines } from "./support/run-cli.ts";

const root = new URL("../", import.meta.url);

async function page(name: string): Promise<string> {
  return await readFile(fileURLToPath(new URL(name, root)), "utf8");
}

/** The module that an example was compiled to. */
function compiled(name: string): string {
  return fileURLToPath(new URL(`dist/examples/${name}.js`, root));
}

const docs = await readdir(fileURLToPath(new URL("docs", root)));
const pages = ["README.md", ...docs.filter((name) => name.endsWith(".md")).map((n) => `docs/${n}`)];

/** Flags of npm, of inference servers and of trainers. */
const FOREIGN_FLAGS = [
  "--use-dynamic-batch-size",
  // Those of pip and npm.
  "--index-url",
  "--global",
  // Docker's COPY.
  "--from",
  // Claude Code's --allowedTools.
  "--allowed",
  "--silent",
  "--help",
  "--omit",
  "--enable-return-indexer-topk",
  "--max-logprobs",
  "--enable-return-routed-experts",
  "--incremental-streaming-output",
  "--return-sampling-mask",
  "--sampling-mask-max-tokens",
  "--enable-scale-out",
  "--enable-auto-tool-choice",
  "--tool-call-parser",
  "--logprobs-mode",
  "--flash-attn",
  "--cache-type-k",
  "--cache-type-v",
  "--disable-radix-cache",
  "--chunked-prefill-size",
  "--dtype",
  "--max-num-batched-tokens",
  "--enable-deterministic-inference",
  // Those of slime and of the recipes.
  "--load-debug-rollout-data",
  "--rollout-batch-size",
  "--n-samples-per-prompt",
  "--custom-generate-function-path",
  "--custom-reward-post-process-path",
  "--dynamic-sampling-filter-path",
  "--prompt-data",
  "--input-key",
  "--metadata-key",
  "--group-rm",
  "--log-passrate",
  "--partial-rollout",
  "--train-backend",
  "--use-dynamic-global-batch-size",
  "--indep-dp",
  "--recompute-logprobs-via-prefill",
  "--calculate-per-token-loss",
  "--rollout-top-p",
  "--use-rollout-routing-replay",
  "--use-rollout-indexer-replay",
  "--opd-log-prob-top-k",
  "--use-opd",
  "--opd-type",
  "--opd-kl-coef",
  "--groups",
  "--work",
  // OpenRLHF's, up to the first dot.
  "--algo",
  // Those of `npm run interop`, `npm run accept` and `npm run pins`.
  "--weights",
  "--rows",
  "--columns",
  "--check",
  // `npm run bench`
  "--only",
  "--base",
  // Node
  "--max-semi-space-size",
];

const helps = new Map<string, Promise<string>>();

/** The help of a command that exists. */
async function helpOf(command: string): Promise<string> {
  const asked =
    helps.get(command) ??
    callCli([...command.split(" "), "--help"]).then(({ status, stdout }) => {
      expect(status, command).toBe(0);
      return stdout;
    });
  helps.set(command, asked);
  return await asked;
}

describe.each(pages)("%s", (name) => {
  test("shows the examples unchanged", async () => {
    const shown = [
      ...(await page(name)).matchAll(/<!-- (examples\/\S+) -->\n```[a-z]+\n([^]*?)```/g),
    ];
    for (const [, file, code] of shown) expect(code, file).toBe(await page(file!));
  });

  test("names only commands and flags that exist", async () => {
    const text = await page(name);
    const named = [...text.matchAll(/(?:turnwright |`)(env [a-z]+)|turnwright (?!--)([a-z-]+)/g)];
    const commands = named.map(([, inGroup, alone]) => inGroup ?? alone!);
    // `npm start` is `turnwright demo`.
    const asked = new Set(["rollout", "demo", ...commands]);
    const texts = await Promise.all([...asked].map(helpOf));
    const known = texts.join("\n");
    const flags = new Set([...text.matchAll(/[ `](--[a-z][a-z-]+)/g)].map(([, flag]) => flag!));
    for (const flag of FOREIGN_FLAGS) flags.delete(flag);
    for (const flag of flags) expect(known, flag).toContain(flag);
  });

  test("links to files that are there", async () => {
    const links = [...(await page(name)).matchAll(/\]\((?!https?:|#)([^)#]+)/g)];
    const place = new URL(name, root);
    const { files } = JSON.parse(await page("package.json")) as { files: readonly string[] };
    for (const [, link] of links) {
      const file = fileURLToPath(new URL(link!, place));
      await access(file);
      // Links to files outside the package do not work for readers of the packed page.
      const inside = path.relative(fileURLToPath(root), file);
      expect(files.some((one) => `${inside}/`.startsWith(`${one}/`)) || !inside, link).toBe(true);
    }
  });
});

test("docs/getting-started.md shows a training row that verifies", async () => {
  const [, row] = /```json\n(\{"format":1[^]*?)```/.exec(await page("docs/getting-started.md"))!;
  expect(verifySample(JSON.parse(row!))).toEqual([]);
});

test("docs/environments.md shows what `env play` answers", async () => {
  const text = await page("docs/environments.md");
  const [line, answer] = [...text.matchAll(/```json\n([^]*?)```/g)].map(([, json]) => json!);
  const { stdout } = await callCli(["env", "play", compiled("lamps")], { input: line! });
  expect(jsonLines(stdout)).toEqual([JSON.parse(answer!)]);
});

/** The turns that solve the library desk's first task. */
const lending = [
  '<tool_call>\n{"name": "return_book", "arguments": {"book": "Emma"}}\n</tool_call>',
  '<tool_call>\n{"name": "lend_book", "arguments": {"book": "Dune", "member": "Ann"}}\n</tool_call>',
  "Here is Dune.",
];

/**
 * A server whose policy solves the first attempt at the library desk's first task, and no other.
 */
async function startDesk() {
  const solved = "library-desk/test/0#0";
  const turns = (rolloutId: string) => (rolloutId === solved ? lending : []);
  return await startSglangTestServer({
    policy: await createTextPolicy(turns, { modelDir: smallModelFolder }),
  });
}

describe("examples", () => {
  test("play-one-episode plays an episode", async () => {
    const { playOneEpisode } = (await import(compiled("play-one-episode"))) as typeof example;
    const codec = await loadTokenCodec(smallModelFolder);
    const { turns } = await demonstrate(createStorefront().task("test", 0), { seed: 0 });
    const outputs = turns.map(({ text }) => codec.encode(`${text}<|im_end|>`));
    const script = (await Promise.all(outputs)).map((outputIds) => ({ outputIds }));
    await using server = await startSglangTestServer({ policy: createScriptedPolicy(script) });
    const episode = await playOneEpisode(server.url, smallModelFolder);
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("errand has a user that reacts, and passes `env check`", async () => {
    const { customer, default: environment } = (await import(compiled("errand"))) as typeof errand;
    const task = environment.task("test", 1);
    const say = (content: string) => ({ type: "say", content }) as const;
    const sell = { type: "call", name: "sell", arguments: new Map([["count", 5n]]) } as const;
    const actions = [say("How many would you like?"), sell, say("Here you are.")];
    const { opening, steps, score } = await playActions(
      environment,
      { task, user: customer, actions },
      { signal: AbortSignal.timeout(60_000) },
    );
    expect([opening, ...steps.map(({ observation }) => observation)]).toEqual([
      "I would like some pears.",
      "5, please.",
      '{"left":15}',
      "Thank you. Bye.",
    ]);
    expect(score.reward).toBe(1);
    expect((await checkEnvironment(environment as Environment)).problems).toEqual([]);
    // The guide shows it without a cast.
    expect(await page("examples/errand.ts")).not.toMatch(/\bas (?!const)/);
  });

  test("first-rollout, the README's program, returns rows with their advantages", async () => {
    const { firstRollout } = (await import(compiled("first-rollout"))) as typeof rolling;
    await using server = await startDesk();
    const rows = await firstRollout(server.url, smallModelFolder);
    expect(rows).toHaveLength(8);
    for (const row of rows) expect(verifySample(row)).toEqual([]);
    const best = rows.find(({ rolloutId }) => rolloutId === "library-desk/test/0#0");
    expect(best?.advantage).toBeCloseTo(1.5, 3);
    expect((await page("examples/first-rollout.ts")).trimEnd().split("\n").length).toBeLessThan(16);
  });

  test("train-on-desk hands out each task's attempts with their advantages", async () => {
    const { trainOnDesk } = (await import(compiled("train-on-desk"))) as typeof training;
    await using server = await startDesk();
    const steps: (readonly training.TrainingRow[])[] = [];
    const { signal } = new AbortController();
    await trainOnDesk({ url: server.url, model: smallModelFolder, signal }, async (rows) => {
      steps.push(rows);
    });
    // The first task's first attempt lends the book, the others do nothing.
    const advantages = steps.map((rows) =>
      rows.map(({ advantage }) => Math.round(advantage * 1e3) / 1e3),
    );
    expect(advantages.toSorted((a, b) => b[0]! - a[0]!)).toEqual([
      [1.5, -0.5, -0.5, -0.5],
      [0, 0, 0, 0],
    ]);
  });

  test("measure-desk measures, and read_run.py reads the same run", async (context) => {
    const { measureDesk } = (await import(compiled("measure-desk"))) as typeof measuring;
    await using server = await startDesk();
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-desk-"));
    onTestFinished(async () => await rm(dir, { recursive: true }));
    const out = path.join(dir, "run");
    const measured = await measureDesk({ url: server.url, model: smallModelFolder, out });
    expect({ ...measured, lost: measured.lost.toSorted() }).toEqual({
      averageReward: 0.25,
      passHat2: 0,
      lost: ["library-desk/test/0#1", "library-desk/test/1#0", "library-desk/test/1#1"],
    });
    const read = `import json, read_run; print(json.dumps(read_run.read_run(${JSON.stringify(out)})))`;
    const examples = fileURLToPath(new URL("examples", root));
    const env = { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: "1" };
    const answer = await promisify(execFile)("python3", ["-c", read], { env }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      },
    );
    if (answer === undefined) return context.skip("there is no python3 here");
    const codec = await loadTokenCodec(smallModelFolder);
    const lengthOf = async (text: string) => (await codec.encode(`${text}<|im_end|>`)).length;
    const idle = await lengthOf("Goodbye!");
    const lent = await Promise.all(lending.map(lengthOf));
    const tasks: unknown = JSON.parse(answer.stdout);
    expect(tasks).toEqual({
      "library-desk/test/0": { reward: 0.5, trained: lent[0]! + lent[1]! + lent[2]! + idle },
      "library-desk/test/1": { reward: 0, trained: 2 * idle },
    });
    const [, shown] = /gives, for .*\n\n```json\n([^]*?)```/.exec(await page("docs/python.md"))!;
    expect(tasks).toEqual(JSON.parse(shown!));
  });

  /**
   * The library desk, and a policy that lends the book that `lends` returns for the rollout's id,
   * if any.
   */
  async function deskSetup(lends: (rolloutId: string) => string | undefined) {
    // The same copy of the package as the examples have.
    const entry = async (name: string) =>
      (await import(compiled(`../src/${name}/index`))) as unknown;
    const { createSglangEngine } = (await entry("engine")) as typeof engines;
    const { createRenderer } = (await entry("renderer")) as typeof renderers;
    const { createUser } = (await entry("user")) as typeof users;
    const desk = (await import(compiled("library-desk"))) as { readonly default: Environment };
    const turns = (id: string) => {
      const book = lends(id);
      return book === undefined ? [] : lending.map((turn) => turn.replace("Dune", book));
    };
    const policy = await createTextPolicy(turns, { modelDir: smallModelFolder });
    const server = await startSglangTestServer({ policy });
    const engine = createSglangEngine({ url: server.url });
    onTestFinished(async () => {
      await engine.close();
      await server.close();
    });
    return {
      environment: { ...desk.default, repeatable: true },
      user: createUser({ strategy: "scripted" }),
      engine,
      renderer: await createRenderer({ modelDir: smallModelFolder }),
    };
  }

  async function folder(): Promise<string> {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-example-"));
    onTestFinished(async () => await rm(dir, { recursive: true }));
    return path.join(dir, "run");
  }

  test("climb-tasks continues after an interruption, to the last task", async () => {
    const { climbTasks } = (await import(compiled("climb-tasks"))) as typeof climbing;
    const setup = await deskSetup((id) =>
      id.endsWith("#0") ? (id.startsWith("library-desk/test/0") ? "Dune" : "Emil") : undefined,
    );
    const silent = trace.getTracer("none").startSpan("none");
    const spans = vi.fn(() => silent);
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: spans }) } as never);
    onTestFinished(() => trace.disable());
    const metrics: string[] = [];
    vi.spyOn(console, "error").mockImplementation((line: string) => void metrics.push(line));
    onTestFinished(() => void vi.restoreAllMocks());
    const dir = await folder();
    let version = 0;
    const signs: string[] = [];
    const train = async (rows: readonly climbing.Row[]): Promise<number> => {
      signs.push(rows.map(({ advantage }) => Math.sign(advantage)).join(" "));
      return (version += 1);
    };
    const first = await climbTasks(setup, { dir, stepCount: 1, version }, train);
    expect(first.end).toBe("interrupted");
    const taken = signs.length;
    const second = await climbTasks(setup, { dir, stepCount: Infinity, version }, train);
    expect(second.end).toBe("finished");
    expect(signs.length).toBeGreaterThan(taken);
    // The attempt that solved the task has a higher reward than the others, which did nothing.
    for (const sign of signs) expect(sign).toMatch(/^1( -1)+$/);
    expect((await verifyFile(path.join(dir, "samples.jsonl"))).violations).toEqual([]);
    const rows = jsonLines(await readFile(path.join(dir, "episodes.jsonl"), "utf8"));
    expect(new Set(rows.map((row) => row["taskIndex"]))).toEqual(new Set([0, 1]));
    expect(metrics[0]).toMatch(/^metrics: http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    expect(spans).toHaveBeenCalledWith("invoke_agent tool-calling");
  });

  test("answer-requests plays the requested tasks", async () => {
    const { answerRequests } = (await import(compiled("answer-requests"))) as typeof answering;
    const setup = await deskSetup((id) =>
      id === "a#1" || id.startsWith("b#") ? "Dune" : undefined,
    );
    async function* ask() {
      yield { taskIndex: 0, name: "a" };
      yield { taskIndex: 1, name: "b" };
      yield { taskIndex: 1, name: "c" };
    }
    expect(await answerRequests(setup, ask())).toEqual(
      new Map([
        ["a", 0.5],
        // The user wanted the other book.
        ["b", 0],
        ["c", 0],
      ]),
    );
  });

  test("answer-requests reports requests that it cannot answer", async () => {
    const { answerRequests } = (await import(compiled("answer-requests"))) as typeof answering;
    const setup = await deskSetup(() => undefined);
    const engine = { ...setup.engine, generate: () => Promise.reject(new Error("it is away")) };
    async function* ask() {
      for (let index = 0; index < 30; index++) yield { taskIndex: 0, name: `${index}` };
    }
    await expect(answerRequests({ ...setup, engine }, ask())).rejects.toThrow(
      /^Cannot continue: 20 episodes failed in a row: .*it is away/,
    );
  });

  test("reverse-kl reads the rewards of tokens by a teacher", async () => {
    const { taughtRows } = (await import(compiled("reverse-kl"))) as typeof distilling;
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-distil-"));
    onTestFinished(async () => await rm(dir, { recursive: true }));
    await rollout({
      environment: createStorefront(),
      user: "scripted",
      engine: "reference",
      model: "models/storefront-2m",
      tasks: "0",
      temperature: 1,
      out: dir,
    });
    const call = await callCli([
      "score",
      dir,
      "--teacher-engine",
      "reference",
      "--teacher-model",
      "models/storefront-2m",
    ]);
    expect(call.status).toBe(0);
    expect(call.stdout).toMatch(
      /1 rows scored by storefront-2m \([\d,]+ tokens\), 0 were scored before/,
    );
    const rows = [];
    for await (const row of taughtRows(dir, "storefront-2m")) rows.push(row);
    expect(rows).toHaveLength(1);
    const [{ places, rewards }] = rows as [(typeof rows)[0]];
    expect(places.length).toBeGreaterThan(0);
    // The policy is its own teacher here, and its engine scores with the bits with which it samples.
    expect(rewards).toEqual(places.map(() => 0));
  });

  test("rescore-run says which rewards another scoring changes, and bundles those", async () => {
    const { rescoreRun } = (await import(compiled("rescore-run"))) as typeof rescoring;
    const { turns } = await demonstrate(createStorefront().task("test", 0), { seed: 0 });
    const solved = turns.map(({ text }) => text);
    await using server = await startSglangTestServer({
      policy: await createTextPolicy((id) => (id.endsWith("#0") ? solved : []), {
        modelDir: smallModelFolder,
      }),
    });
    const dir = await folder();
    const settings = { url: server.url, model: smallModelFolder, out: dir, samples: 2 };
    for await (const _ of rollout({
      ...settings,
      environment: "storefront",
      split: "test",
      tasks: [0],
    }));
    const found = await rescoreRun(dir, (score) => ({ ...score, reward: 0 }));
    expect(found.map(({ rolloutId, before, now }) => [rolloutId, before, now])).toEqual([
      ["storefront/test/0#0", 1, 0],
    ]);
    const file = path.join(path.dirname(dir), "report.json");
    await writeFile(file, JSON.stringify(found[0]!.bundle));
    expect((await openRecordedRun(file)).rolloutIds).toEqual(["storefront/test/0#0"]);
    const { stdout } = await callCli(["replay", dir, "--rescore-reward"]);
    expect(stdout).toBe("2 scored again, 0 rewards change, 0 cannot be played again\n");
  });

  test("judged-letters has its rewards from a judge, and no reward without one", async () => {
    let status = 200;
    const judge = createServer((request, response) => {
      void text(request).then((body) => {
        const { messages } = JSON.parse(body) as { messages: { content: string }[] };
        const points = messages[0]!.content.includes("warmly") ? 9 : 3;
        const message = { content: `{"points": ${points}}` };
        const usage = { prompt_tokens: 1_000, completion_tokens: 200 };
        response.writeHead(status).end(JSON.stringify({ choices: [{ message }], usage }));
      });
    });
    await new Promise<void>((resolve) => judge.listen(0, "127.0.0.1", resolve));
    vi.stubEnv("JUDGE_URL", `http://127.0.0.1:${(judge.address() as AddressInfo).port}/v1`);
    try {
      const { default: letters } = (await import(compiled("judged-letters"))) as typeof judging;
      await using server = await startSglangTestServer({
        policy: await createTextPolicy(
          (id) => [id.endsWith("0#0") ? "Dear Ann, I thank you warmly." : "Thanks."],
          { modelDir: smallModelFolder },
        ),
      });
      const dir = await folder();
      const settings = { url: server.url, model: smallModelFolder, environment: letters };
      const episodes: Episode[] = [];
      const options = { ...settings, maxTurns: 1, out: dir };
      for await (const group of rollout(options)) episodes.push(...group.episodes);
      // Groups come in the order in which they end.
      episodes.sort((one, other) => one.taskIndex - other.taskIndex);
      const scores = episodes.map(({ reward, success, rewardDetails }) => [
        reward,
        success,
        rewardDetails,
      ]);
      expect(scores).toEqual([
        [0.9 * 0.8 + 0.2, true, { judge: { points: 9, costUsd: 0.0008 } }],
        [0.3 * 0.8, false, { judge: { points: 3, costUsd: 0.0008 } }],
      ]);
      status = 503;
      for await (const { episodes: failed } of rollout({ ...settings, maxTurns: 1, tasks: [0] })) {
        expect(failed[0]).toMatchObject({ outcome: "failed", failure: { party: "grader" } });
        expect(failed[0]).not.toHaveProperty("reward");
      }
    } finally {
      vi.unstubAllEnvs();
      judge.closeAllConnections();
      await new Promise((resolve) => judge.close(resolve));
    }
  });

  test("rescore-run also scores the worlds of a defined environment again", async () => {
    const { rescoreRun } = (await import(compiled("rescore-run"))) as typeof rescoring;
    const dir = await folder();
    const environment = path.join(path.dirname(dir), "greeting.mjs");
    await writeFile(
      environment,
      `import { defineEnvironment } from ${JSON.stringify(compiled("../src/index"))};
      export default defineEnvironment({
        name: "greeting", tasks: [{ instruction: "Greet me." }], policy: "Greet.", tools: {},
        repeatable: true, score: (state, task, { answer }) => answer.startsWith("Hi"),
      });`,
    );
    await using server = await startSglangTestServer({
      policy: await createTextPolicy(() => ["Hi there"], { modelDir: smallModelFolder }),
    });
    const settings = { url: server.url, model: smallModelFolder, out: dir, environment };
    for await (const _ of rollout(settings));
    const found = await rescoreRun(dir, (score) => ({ ...score, reward: 0 }));
    expect(found.map(({ rolloutId, before, now }) => [rolloutId, before, now])).toEqual([
      ["greeting/test/0#0", 1, 0],
    ]);
  });

  test("stream-groups trains on groups whose rewards differ", async () => {
    const { trainOnGroups } = (await import(compiled("stream-groups"))) as typeof streaming;
    const environment = createStorefront();
    const codec = await loadTokenCodec(smallModelFolder);
    const solved = await Promise.all(
      [0, 1, 2, 3, 4].map(async (index) => {
        const { turns } = await demonstrate(environment.task("train", index), { seed: 0 });
        return turns.map(({ text }) => text);
      }),
    );
    await codec.close?.();
    const turns = (id: string) => {
      const [, index = "", attempt = ""] = /(\d+)(?:~\d+)?#(\d)$/.exec(id) ?? [];
      return attempt === "0" ? solved[Number(index)]! : [];
    };
    await using server = await startSglangTestServer({
      policy: await createTextPolicy(turns, { modelDir: smallModelFolder }),
    });
    const steps: (readonly number[])[] = [];
    const options = { url: server.url, modelDir: smallModelFolder, steps: 2 };
    const count = await trainOnGroups(options, async (rows) => {
      steps.push(rows.map(({ advantage }) => Math.sign(advantage)));
    });
    expect([count, steps]).toEqual([
      2,
      [
        [1, -1, -1, -1],
        [1, -1, -1, -1],
      ],
    ]);
  });

  test("mastermind_env.py, an adapter in twenty lines, plays with verified rows", async (context) => {
    const file = fileURLToPath(new URL("examples/mastermind_env.py", root));
    const lines = (await page("examples/mastermind_env.py")).split("\n").filter(Boolean);
    expect(lines.length).toBeLessThanOrEqual(20);
    const python = "import sys; sys.exit(sys.version_info < (3, 10))";
    const found = await promisify(execFile)("python3", ["-c", python]).catch(() => undefined);
    if (found === undefined) return context.skip("there is no python3 of 3.10 or newer here");
    // The code of task 0.
    const turns = (id: string) =>
      id.endsWith("#0") ? ["1111", "4413"] : Array<string>(8).fill("1");
    await using server = await startSglangTestServer({
      policy: await createTextPolicy(turns, { modelDir: smallModelFolder }),
    });
    const dir = await folder();
    const settings = { url: server.url, model: smallModelFolder, out: dir, samples: 2 };
    for await (const _ of rollout({ ...settings, environment: file, split: "train", tasks: [0] }));
    const rows = jsonLines(await readFile(path.join(dir, "samples.jsonl"), "utf8"));
    for (const row of rows) expect(verifySample(row)).toEqual([]);
    const episodes = jsonLines(await readFile(path.join(dir, "episodes.jsonl"), "utf8"));
    expect(
      Object.fromEntries(
        episodes.map((row) => [row["rolloutId"], [row["reward"], row["rewardDetails"]]]),
      ),
    ).toEqual({
      "mastermind/train/0#0": [1, { turns: 2 }],
      "mastermind/train/0#1": [0, { turns: 8 }],
    });
  });

  test("play-lamps-by-hand earns the reward of every test task", async () => {
    const { playLampsByHand } = (await import(compiled("play-lamps-by-hand"))) as typeof byHand;
    for (let index = 0; index < 100; index++) {
      const { steps, score } = await playLampsByHand(index);
      expect(steps.at(-1)?.done).toBe("user-left");
      expect(score.reward).toBe(1);
    }
  });
});
