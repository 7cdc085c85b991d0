import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as lampsModule from "../../examples/lamps.ts";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { playEpisode } from "../../src/episode/play-episode.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import { createScriptedPolicy, startSglangTestServer } from "../../src/testing/index.ts";
import { sessionScriptPolicy } from "../../src/testing/policies/session-script-policy.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import { smallModelFolder } from "../support/small-model.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

/** The example of docs/environments.md, as a reader would compile it. */
const lampsFile = fileURLToPath(new URL("../../dist/examples/lamps.js", import.meta.url));
const { createEnvironment, createUser } = (await import(lampsFile)) as typeof lampsModule;
const lamps = createEnvironment();
const { signal } = new AbortController();

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-own-environment-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A good agent's samples in a task: it asks, and respects the answer. */
function solution(index: number): readonly string[] {
  const { wish, changesMind } = lamps.task("test", index).data;
  const given = JSON.stringify({ name: "set_lamp", arguments: wish });
  const set = `<tool_call>\n${given}\n</tool_call>`;
  const ask = `Shall I set the ${wish.room} to ${wish.level}?`;
  return changesMind ? [ask, "All right."] : [ask, set, "Done."];
}

async function encodeTurns(texts: readonly string[]): Promise<number[][]> {
  const codec = await loadTokenCodec(smallModelFolder);
  return await Promise.all(texts.map((text) => codec.encode(`${text}<|im_end|>`)));
}

/** A server that samples the solutions of some test tasks, each played `samples` times. */
async function startServer({ tasks, samples }: { tasks: number; samples: number }) {
  const codec = await loadTokenCodec(smallModelFolder);
  const sessions: Record<string, number[][]> = {};
  for (let index = 0; index < tasks; index++) {
    const turns = await encodeTurns(solution(index));
    for (let sample = 0; sample < samples; sample++) {
      sessions[`lamps/test/${index}#${sample}`] = turns;
    }
  }
  const turnMarkerIds = await codec.encode("<|im_start|>assistant\n");
  const otherwise = await codec.encode("Goodbye!<|im_end|>");
  return await startSglangTestServer({
    policy: sessionScriptPolicy({ turnMarkerIds, sessions, otherwise }),
  });
}

describe("the lamps of docs/environments.md", () => {
  test("draw the same task from the same place, with data that survives JSON", () => {
    const task = lamps.task("train", 7);
    expect(createEnvironment().task("train", 7)).toEqual(task);
    expect(JSON.parse(JSON.stringify(task))).toEqual(task);
    expect(() => lamps.task("test", 100)).toThrow('Cannot draw task 100 of split "test" of lamps');
    expect(() => lamps.task("dev", 0)).toThrow('split "dev"');
  });

  test.each<[string, string, Map<string, bigint | string | number>, string]>([
    ["a tool that is not there", "burn", new Map(), "Error: no tool burn"],
    ["no arguments", "set_lamp", new Map(), "Error: no such room"],
    [
      "a level that is not a whole number",
      "set_lamp",
      new Map<string, string | number>([
        ["room", "hall"],
        ["level", 7],
      ]),
      "Error: level is a whole number, 0 to 10",
    ],
  ])("answer %s with an error, and change nothing", async (_, name, given, observation) => {
    const task = lamps.task("test", 0);
    const user = createUser().open(task, { seed: 0 });
    await using world = await lamps.open(task, { user, signal });
    await world.begin({ signal });
    const step = await world.step({ type: "call", name, arguments: given }, { signal });
    expect(step).toEqual({ observation, from: "tool", source: name, isError: true });
    const { details } = await world.score({ signal });
    expect(details["reached"]).toEqual(task.data.levels);
  });

  test("give no reward to an agent that acts against a no", async () => {
    const index = Array.from({ length: 100 }, (_, i) => i).find(
      (i) => lamps.task("test", i).data.changesMind,
    )!;
    const { wish } = lamps.task("test", index).data;
    const line = {
      split: "test",
      taskIndex: index,
      actions: [{ name: "set_lamp", arguments: wish }],
    };
    const { stdout } = await callCli(["env", "play", lampsFile], { input: JSON.stringify(line) });
    expect(jsonLines(stdout)).toEqual([
      expect.objectContaining({ reward: 0, outcome: "truncated" }),
    ]);
  });

  test("are played from the library, by a policy in an engine", async () => {
    const script = (await encodeTurns(solution(0))).map((outputIds) => ({ outputIds }));
    await using server = await startSglangTestServer({ policy: createScriptedPolicy(script) });
    const engine = createSglangEngine({ url: server.url });
    try {
      const task = lamps.task("test", 0);
      const episode = await playEpisode(
        { task, rolloutId: `${task.id}#0`, groupId: task.id, sampleIndex: 0, seed: 0 },
        {
          environment: lamps,
          user: createUser(),
          engine,
          renderer: await createRenderer({ modelDir: smallModelFolder }),
          agent: createToolCallingAgent({
            parser: findToolCallParser("qwen25"),
            toolUsePolicy: toolUsePolicies.many,
          }),
          sampling: { temperature: 1 },
          limits: defaultLimits,
          now: Date.now,
        },
        { signal },
      );
      expect(episode).toMatchObject({ outcome: "completed", reward: 1, environment: "lamps" });
      expect(episode.turns.map(({ text }) => text)).toEqual(solution(0));
    } finally {
      await engine.close();
    }
  });
});

describe("a module in the place of an environment's name", () => {
  const model = ["--model", smallModelFolder, "--parser", "qwen25", "--user", "scripted"];

  test("rollout and eval play it with the user that it brings, and report finds it again", async () => {
    await using server = await startServer({ tasks: 2, samples: 2 });
    const scope = [
      "--split",
      "test",
      "--env",
      lampsFile,
      "--url",
      server.url,
      ...model,
      "--tasks",
      "0-1",
    ];
    const rollout = path.join(scratch, "rollout");
    const evaluation = path.join(scratch, "eval");
    const [played, evaluated] = await Promise.all([
      callCli(["rollout", ...scope, "--samples", "2", "--out", rollout]),
      callCli(["eval", ...scope, "--trials", "2", "--out", evaluation, "--quiet"]),
    ]);
    expect(played.stderr).toContain("4/4 done");
    expect([played.status, evaluated.status]).toEqual([0, 0]);
    const samples = jsonLines(await readFile(path.join(rollout, "samples.jsonl"), "utf8"));
    expect(samples.map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
    expect(samples.flatMap((sample) => verifySample(sample))).toEqual([]);
    const reported = await callCli(["report", evaluation, "--json"]);
    expect(jsonLines(reported.stdout)[0]).toMatchObject({
      environment: "lamps",
      averageReward: { value: 1, taskCount: 2 },
    });
  });

  test("env list shows it", async () => {
    const { stdout } = await callCli(["env", "list", lampsFile]);
    expect(jsonLines(stdout)).toEqual([
      {
        environment: "lamps",
        splits: { train: 10_000, test: 100 },
        tools: ["list_lamps", "set_lamp"],
        source: "generated: each task is drawn from its split and index",
      },
    ]);
  });

  test("env play takes given user lines as well", async () => {
    const say = { name: "respond", arguments: { content: "Which one?" } };
    const userReplies = ["The light!", { text: "That one.", leaves: true }];
    const input = JSON.stringify({ split: "test", taskIndex: 0, userReplies, actions: [say] });
    const { stdout } = await callCli(["env", "play", lampsFile], { input });
    expect(jsonLines(stdout)).toEqual([
      expect.objectContaining({
        resetObservation: "The light!",
        steps: [{ observation: "That one.", reward: 0, done: true, source: "user" }],
        outcome: "completed",
      }),
    ]);
  });

  test("env play and env replay answer an invalid line with its error and continue", async () => {
    const lines = [
      { id: 1, split: "test", taskIndex: 100, actions: [] },
      { id: 2, split: "test", taskIndex: 0, actions: [{ name: "respond" }] },
      { id: 3, split: "test", taskIndex: 0, seed: "x", actions: [] },
      { id: 5, split: "test", taskIndex: 0, seed: 2 ** 53, actions: [] },
      { id: 4, split: "test", taskIndex: 0, actions: [] },
    ];
    const input = lines.map((line) => JSON.stringify(line)).join("\n");
    const { status, stdout } = await callCli(["env", "play", lampsFile], { input });
    expect(status).toBe(1);
    const answers = jsonLines(stdout) as { error?: { message: string } }[];
    expect(answers.map(({ error }) => error?.message)).toEqual([
      'Cannot draw task 100 of split "test" of lamps',
      '"actions"[0].arguments.content must be a text',
      '"seed" must be a whole number below 2^53',
      '"seed" must be a whole number below 2^53',
      undefined,
    ]);
  });

  test("env replay calls tools, of the first test task if the line names none", async () => {
    const calls = [{ name: "list_lamps" }, { name: "respond", argumentsText: '{"content":"Hi"}' }];
    const lines = [{ calls }, { split: "train", taskIndex: 7, calls: calls.slice(0, 1) }];
    const input = lines.map((line) => JSON.stringify(line)).join("\n");
    const { stdout } = await callCli(["env", "replay", lampsFile], { input });
    expect(jsonLines(stdout)).toEqual([
      {
        observations: [JSON.stringify(lamps.task("test", 0).data.levels), "Error: no tool respond"],
      },
      { observations: [JSON.stringify(lamps.task("train", 7).data.levels)] },
    ]);
  });

  test("env replay prints the hash of a state that has one", async () => {
    const input = JSON.stringify({ calls: [{ name: "get_order", arguments: { order: "0" } }] });
    const { stdout } = await callCli(["env", "replay", "storefront"], { input });
    expect(jsonLines(stdout)).toEqual([
      {
        observations: ["Error: no order 0"],
        stateHashes: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      },
    ]);
  });
});

test("a module that cannot be used gets one clear line and exit status 2", async () => {
  const file = path.join(scratch, "empty.mjs");
  await writeFile(file, "");
  const further = ["--user", "scripted", "--url", "http://127.0.0.1:9", "--model", "/nowhere"];
  for (const args of [
    ["env", "play", file],
    ["rollout", "--env", file, ...further],
    ["eval", "--env", file, ...further],
  ]) {
    const { status, stdout, stderr } = await callCli(args, { input: "{}" });
    expect(stderr).toBe(
      `turnwright: Cannot use environment ${file}: it exports nothing, ` +
        "expected a default export that is an environment, or an export createEnvironment()\n",
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  }
});

describe("a promise that an environment forgets", () => {
  let file = "";
  beforeAll(async () => {
    file = path.join(scratch, "forgetful.mjs");
    await writeFile(
      file,
      `import { createEnvironment as createLamps, createUser } from ${JSON.stringify(lampsFile)};
export { createUser };
const forget = [
  () => {},
  () => Promise.reject(new Error("the log is full")),
  // A system error has no line of any file, and a text has no stack at all.
  () => Promise.reject(Object.assign(new Error("no such file"), { stack: "Error: no such file" })),
  () => Promise.reject("no network"),
];
export function createEnvironment() {
  const lamps = createLamps();
  const open = (task, options) => {
    void forget[task.index % 4]();
    return lamps.open(task, options);
  };
  return { ...lamps, open };
}
`,
    );
  });

  const remedy = "; await it, or catch what it may throw";
  const unknown = "an environment, an agent or another module of yours";
  const lines = [
    `${unknown}: an unhandled promise was rejected: no such file${remedy}`,
    `${unknown}: an unhandled promise was rejected: no network${remedy}`,
    `forgetful.mjs:5: an unhandled promise was rejected: the log is full${remedy}`,
  ];
  const reported = (stderr: string) =>
    stderr
      .split("\n")
      .filter((line) => line.includes("an unhandled promise"))
      .toSorted();

  test("costs no other episode, and is reported with its line if known", async () => {
    await using server = await startServer({ tasks: 4, samples: 1 });
    const out = path.join(scratch, "forgetful");
    const { status, stdout, stderr } = await runCli([
      "rollout",
      "--split",
      "test",
      "--env",
      file,
      "--tasks",
      "0-3",
      "--user",
      "scripted",
      "--quiet",
      "--url",
      server.url,
      "--model",
      smallModelFolder,
      "--out",
      out,
    ]);
    expect(reported(stderr)).toEqual(lines.map((line) => `turnwright: ${line}`).toSorted());
    expect(stdout).toContain("4 of 4: 4 completed, 0 truncated, 0 failed");
    expect(status).toBe(0);
  });

  test("is an error to `env check`", async () => {
    const { status, stdout } = await runCli(["env", "check", file, "--tasks", "4", "--json"]);
    const { ok, problems } = JSON.parse(stdout) as { ok: boolean; problems: { message: string }[] };
    expect(ok).toBe(false);
    const errors = [
      ["lamps/train/6666", lines[0]],
      ["lamps/train/9999", lines[1]],
      ["lamps/train/3333", lines[2]],
    ].map(([task, line]) => {
      const [what, remedy] = line!.split("; ");
      const where = `task ${task}`;
      return { severity: "error", task, where, what, remedy, message: `${where}: ${line}` };
    });
    expect(problems).toEqual(expect.arrayContaining(errors) as object);
    expect(status).toBe(1);
  });

  test("ends no other command that plays it", async () => {
    const input = [0, 1, 2, 3]
      .map((taskIndex) => `${JSON.stringify({ split: "test", taskIndex, actions: [] })}\n`)
      .join("");
    const { status, stdout, stderr } = await runCli(["env", "play", file], { input });
    expect(jsonLines(stdout)).toHaveLength(4);
    expect(reported(stderr)).toEqual(lines.map((line) => `turnwright: ${line}`).toSorted());
    expect(status).toBe(0);
  });
});

test.each([
  // An error as the system throws it, and one as foreign code throws it.
  ["without a line", "Error: disk full"],
  ["with a line of another program", "Error: disk full\n    at write (file:///lamps.js:1:2)"],
])("an error that ends a command is not a forgotten promise: %s", async (_, stack) => {
  const spoil = `process.stdout.write = () => { throw Object.assign(new Error("disk full"), { stack: ${JSON.stringify(stack)} }); };`;
  const file = path.join(scratch, "spoil.mjs");
  await writeFile(file, spoil);
  for (const start of ["main.js", "start.cjs"]) {
    const { status, stderr } = await runCli(["env", "list"], {
      env: { NODE_OPTIONS: `--import=${pathToFileURL(file).href}` },
      start,
    });
    expect(stderr).toContain("disk full");
    expect(stderr).not.toContain("an unhandled promise");
    expect(status).toBe(1);
  }
});

test("a folder in a file's place is refused", async () => {
  expect(await callCli(["env", "play", lampsFile, "--in", scratch])).toEqual({
    status: 2,
    stdout: "",
    stderr: `turnwright: Cannot read ${scratch}: it is a folder, expected a file\n`,
  });
});

test("`env check` ends a user and a tool that loop without end, and names their lines", async () => {
  const file = path.join(scratch, "looping.mjs");
  await writeFile(
    file,
    `import { defineEnvironment } from ${JSON.stringify(pathToFileURL(fileURLToPath(new URL("../../dist/src/index.js", import.meta.url))).href)};
export default defineEnvironment({
  name: "looping", tasks: [{ instruction: "Look." }], policy: "", score: () => 0,
  tools: { look: { description: "Look.", execute() {
    for (;;) {}
  } } },
  user: { strategy: "own", promptHash: "", open: () => ({
    begin: async () => "Hello.",
    async reply() {
      for (;;) {}
    },
    usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0, costUsd: 0 }),
  }) },
});
`,
  );
  const { status, stdout } = await runCli(["env", "check", file, "--timeout", "1"]);
  const ended = "no answer within 1000 ms: it runs without end at looping.mjs";
  expect(stdout).toContain(`Cannot hear the user's reply in task looping/test/0: ${ended}:10\n`);
  expect(stdout).toContain(`Cannot answer tool look: ${ended}:5\n`);
  expect(status).toBe(1);
});

test("`env check` reports an `initialState` that loops without end as a problem", async () => {
  const file = path.join(scratch, "looping-state.mjs");
  await writeFile(
    file,
    `import { defineEnvironment } from ${JSON.stringify(pathToFileURL(fileURLToPath(new URL("../../dist/src/index.js", import.meta.url))).href)};
export default defineEnvironment({
  name: "looping", tasks: [{ instruction: "Look." }], policy: "", score: () => 0, tools: {},
  initialState() {
    for (;;) {}
  },
});
`,
  );
  const { status, stdout } = await runCli(["env", "check", file, "--timeout", "1", "--json"]);
  const { problems } = JSON.parse(stdout) as { problems: { what: string }[] };
  const ended = "no answer within 1000 ms: it runs without end at looping-state.mjs:5";
  expect(problems.map(({ what }) => what)).toEqual([`Cannot open task looping/test/0: ${ended}`]);
  expect(status).toBe(1);
});

test("a module that never finishes loading is reported, and what an environment left running is ended", async () => {
  const endless = path.join(scratch, "endless-await.mjs");
  await writeFile(endless, "await new Promise(() => {});\n");
  const { status, stderr } = await runCli(["env", "check", endless]);
  expect(stderr).toContain("turnwright: Cannot finish: nothing runs that could settle a promise");
  expect(status).toBe(13);
  const file = path.join(scratch, "ticking.mjs");
  await writeFile(
    file,
    `setInterval(() => {}, 1_000);\nexport { createEnvironment } from ${JSON.stringify(pathToFileURL(lampsFile).href)};\n`,
  );
  const ticking = await runCli(["env", "list", file]);
  expect(ticking.stderr).toBe(
    "turnwright: note: ended what still ran after the command (Timeout)\n",
  );
  expect(ticking.status).toBe(0);
});

test("`env check` says of how many tasks it has played how many", async () => {
  const said = async (...flags: readonly string[]) =>
    (await callCli(["env", "check", lampsFile, ...flags])).stdout
      .trimEnd()
      .split("\n")
      .at(-1)!
      .split(", ")
      .slice(0, -3)
      .join(", ");
  expect(await said()).toBe("lamps: 6 of 10,100 tasks (--tasks N|all plays more)");
  expect(await said("--tasks", "1")).toBe("lamps: 2 of 10,100 tasks (--tasks N|all plays more)");
  const refused = await callCli(["env", "check", lampsFile, "--tasks", "some"]);
  expect(refused.stderr).toMatch(/expected .*, or all \(see --help\)\n$/);
  expect(refused.status).toBe(2);
});
