import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { verifyRun } from "../verify/verify-run.ts";
import type { Engine } from "../engine/engine.ts";
import { createSglangEngine } from "../engine/sglang/sglang-engine.ts";
import { defineEnvironment } from "../environment/define-environment.ts";
import { refuse } from "../environment/refuse.ts";
import type { Episode } from "../episode/episode.ts";
import { UsageError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { preparedEngine } from "../episode/lamp-episode.fixture.ts";
import {
  createCharacterRenderer,
  startSglangTestServer,
  createTextPolicy,
} from "../testing/index.ts";
import { decodeLogprobs } from "../columns/teacher-columns.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { parseTeacherRow } from "../teacher/teacher-record.ts";
import { turnAdvantages } from "../run/schedule/turn-advantages.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import { verifySample } from "../trajectory/verify-sample.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import { readRunConfig } from "../composition/config/run-config.ts";
import { describeSettings } from "../composition/config/stored-settings.ts";
import { evaluate } from "./evaluate.ts";
import { readRun } from "./read-run.ts";
import type { RolloutEpisode, RolloutOptions } from "./rollout-options.ts";
import { rollout } from "./rollout.ts";

const smallModelFolder = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
/** Its `<|im_end|>`. */
const smallModelEndId = 2939;

const renderer = createCharacterRenderer();

/** A user who wants a number of lamps on. */
const environment = defineEnvironment({
  name: "lights",
  tasks: [1, 2, 3].map((wanted) => ({ instruction: `${wanted} on, please.`, wanted })),
  initialState: () => ({ on: 0 }),
  policy: "Switch lamps on.",
  tools: {
    switch_on: {
      description: "Switch a lamp on.",
      execute: (_, state) => (state.on < 2 ? (state.on += 1) : refuse("there are two")),
    },
  },
  score: ({ on }, { wanted }) => on === wanted,
});

const call = '<tool_call>\n{"name": "switch_on", "arguments": {}}\n</tool_call>';

let scratch = "";
let server: Awaited<ReturnType<typeof startSglangTestServer>>;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-library-"));
  // The second attempt at each task says only goodbye.
  const turns = (id: string) => (id.endsWith("#1") ? ["Bye."] : [call, call, "They are on."]);
  server = await startSglangTestServer({ policy: await createTextPolicy(turns, { renderer }) });
});
afterAll(async () => {
  await server.close();
  await rm(scratch, { recursive: true });
});

function options() {
  return { environment, renderer, url: server.url, samples: 2 } as const;
}

/** Plays the options' episodes, group by group. */
async function* play(options: RolloutOptions): AsyncGenerator<RolloutEpisode> {
  for await (const { episodes } of rollout(options)) yield* episodes;
}

/** Returns the size of a folder's recording, in bytes. */
async function recordedBytes(dir: string): Promise<number> {
  const { size } = await stat(path.join(dir, "recording.jsonl")).catch(() => ({ size: 0 }));
  return size;
}

describe("rollout()", () => {
  test("yields every episode with rows that verify", async () => {
    const rewards: Record<string, number | undefined> = {};
    for await (const { samples, ...episode } of play(options())) {
      rewards[episode.rolloutId] = episode.reward;
      expect(samples.flatMap((sample) => verifySample(sample))).toEqual([]);
      expect(samples.map(({ reward }) => reward)).toEqual([episode.reward]);
    }
    expect(rewards).toEqual({
      "lights/test/0#0": 0,
      "lights/test/0#1": 0,
      "lights/test/1#0": 1,
      "lights/test/1#1": 0,
      "lights/test/2#0": 0,
      "lights/test/2#1": 0,
    });
  });

  test("a teacher scores the rows before the rollout ends", async () => {
    const out = path.join(scratch, "taught");
    const scored: unknown[] = [];
    const teacher: Engine = {
      kind: "fake",
      generate: () => Promise.reject(new Error("no turn is sampled")),
      describe: async () => ({ kind: "fake", logprobConvention: "raw" }),
      score: async ({ ids, from = 1 }) => ids.slice(from).map(() => -0.5),
      close: () => Promise.reject(new Error("an engine that was passed stays open")),
    };
    const taught = { ...options(), out, teacher, teacherName: "large" };
    await rollout({ ...taught, onTeacher: (counts) => scored.push(counts) });
    expect(scored).toMatchObject([{ name: "large", rowCount: 6, scoredCount: 6 }]);
    const lines = await readFile(path.join(out, "teachers/large.jsonl"), "utf8");
    expect(lines.trim().split("\n")).toHaveLength(6);
    await using columns = openColumnFolder(out);
    const { columns: parts } = parseTeacherRow(lines.split("\n")[0]!)!;
    const logprobs = decodeLogprobs(await columns.read(parts.teacherLogprobs!));
    expect(new Set(logprobs)).toEqual(new Set([-0.5]));
  });

  test("a teacher's settings are those of the command line", async () => {
    const out = path.join(scratch, "served");
    const scored: unknown[] = [];
    await rollout({
      ...options(),
      tasks: [0],
      out,
      teacher: server.url,
      "teacher-name": "served",
      teacherTop: 2,
      onTeacher: (counts) => scored.push(counts),
    });
    expect(scored).toMatchObject([{ name: "served" }]);
    const record = await readFile(path.join(out, "teachers/served.json"), "utf8");
    expect(JSON.parse(record)).toMatchObject({ engine: "sglang", topCount: 2 });
    const play = async (more: object): Promise<unknown> =>
      await rollout({ ...options(), tasks: [0], ...more });
    await expect(play({ teacher: server.url })).rejects.toThrow("Missing out: a teacher's columns");
    await expect(play({ teacherName: "served", out })).rejects.toThrow("Missing --teacher");
    await expect(play({ teacher: server.url, teacherTop: -1, out })).rejects.toThrow("teacher-top");
  });

  test("stops waiting for an engine object that never describes itself, and blames one that fails", async () => {
    const engine = createSglangEngine({ url: server.url });
    const { url: _server, ...rest } = options();
    const stop = new AbortController();
    const asked = withResolvers();
    const hung: Engine = {
      ...engine,
      describe: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    };
    const first = rollout({ ...rest, engine: hung, signal: stop.signal })[Symbol.asyncIterator]();
    const reason = new Error("enough");
    const outcome = expect(first.next()).rejects.toBe(reason);
    await asked.promise;
    stop.abort(reason);
    await outcome;
    const failing = { ...engine, describe: () => Promise.reject(new Error("db away")) };
    const second = rollout({ ...rest, engine: failing })[Symbol.asyncIterator]();
    await expect(second.next()).rejects.toMatchObject({
      code: "engine/exception",
      message: `Cannot describe the engine sglang: db away`,
    });
    await engine.close();
  });

  test.each(["tasks", "split", "epochs", "groups"])(
    "refuses %s with a source before the engine is opened",
    async (name) => {
      const engine = createSglangEngine({ url: server.url });
      const describeIt = vi.spyOn(engine, "describe");
      const { url: _server, ...rest } = options();
      const source = { next: async () => undefined };
      const wrong: object = { ...rest, engine, source, [name]: name === "tasks" ? [1] : "1" };
      const message = `Cannot use ${name} with source: a source chooses the tasks`;
      await expect(rollout(wrong as RolloutOptions)).rejects.toThrow(message);
      expect(describeIt).not.toHaveBeenCalled();
      await engine.close();
    },
  );

  test("makes rows for a loop only", async () => {
    let readCount = 0;
    const onEpisode = (episode: Episode): void => {
      const { segments } = episode;
      const get = (): Episode["segments"] => {
        readCount += 1;
        return segments;
      };
      Object.defineProperty(episode, "segments", { get, enumerable: true });
    };
    const once = { ...options(), samples: 1, tasks: [1], onEpisode };
    await rollout(once);
    expect(readCount).toBe(0);
    for await (const { episodes } of rollout(once)) expect(episodes[0]!.samples).toHaveLength(1);
    expect(readCount).toBeGreaterThan(0);
  });

  test("can be awaited if its iterator is never advanced", async () => {
    const run = rollout({ ...options(), tasks: [1] });
    const iterator = run[Symbol.asyncIterator]();
    expect((await run).end).toBe("finished");
    expect(await iterator.next()).toMatchObject({ done: true });
    const unused = rollout({ ...options(), tasks: [1] });
    await unused[Symbol.asyncIterator]().return();
    expect((await unused).end).toBe("finished");
  });

  test("plays to the end if an engine object reports an invalid context length", async () => {
    const engine = createSglangEngine({ url: server.url });
    const { url: _server, ...rest } = options();
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const emptied: Engine = {
      ...engine,
      describe: async () => ({ ...(await engine.describe()), contextLength: 0 }),
    };
    const stopReasons: string[] = [];
    for await (const episode of play({ ...rest, engine: emptied, tasks: [1] })) {
      stopReasons.push(episode.stopReason);
    }
    expect(stopReasons).toEqual(["user-left", "user-left"]);
    expect(warned.mock.calls).toEqual([
      [expect.stringContaining("the engine sglang names the context length 0, expected a whole")],
    ]);
    await engine.close();
  });

  test("plays chosen tasks of a split without an end", async () => {
    const endless = { ...environment, splits: { test: Infinity } };
    const played: string[] = [];
    for await (const episode of play({ ...options(), environment: endless, tasks: "1" })) {
      played.push(episode.rolloutId);
    }
    expect(played.toSorted()).toEqual(["lights/test/1#0", "lights/test/1#1"]);
  });

  test("yields groups, and takes settings in either notation and an engine object", async () => {
    const engine = createSglangEngine({ url: server.url });
    const { url: _server, ...rest } = options();
    const groups = [];
    const settings = { ...rest, engine, tasks: [2, 1], maxTurns: 2, "max-tokens-per-turn": 300 };
    for await (const { groupId, episodes } of rollout(settings)) {
      groups.push([groupId, episodes.map(({ stopReason }) => stopReason)]);
    }
    expect(groups.toSorted(([a], [b]) => String(a).localeCompare(String(b)))).toEqual([
      ["lights/test/1", ["max-turns", "user-left"]],
      ["lights/test/2", ["max-turns", "user-left"]],
    ]);
    expect((await engine.describe()).kind).toBe("sglang");
    await engine.close();
  });

  test("gives groups the advantages of their turns, and refuses a wrong discount", async () => {
    const byTurn = { ...options(), tasks: "1", turnAdvantages: { discount: 0.5 } };
    const given = [];
    for await (const group of rollout(byTurn)) {
      given.push(group.turnAdvantages);
      expect(group.turnAdvantages).toEqual(turnAdvantages(group, "grpo", { discount: 0.5 }));
    }
    expect(given).toEqual([[expect.arrayContaining([expect.any(Number)]), [expect.any(Number)]]]);
    for await (const group of rollout({ ...options(), tasks: "1" })) {
      expect(group).not.toHaveProperty("turnAdvantages");
    }
    await expect(rollout({ ...options(), turnAdvantages: { discount: 2 } })).rejects.toThrow(
      "Cannot compute advantages: the discount is 2, expected a number from 0 to 1",
    );
    const misspelt = { discout: 0.5 } as object;
    await expect(rollout({ ...options(), turnAdvantages: misspelt })).rejects.toThrow(
      "Cannot compute advantages: there is no option discout, expected discount",
    );
  });

  test("stops when the loop is left, and continues from the folder", async () => {
    const out = path.join(scratch, "broken-off");
    for await (const { groupId } of rollout({ ...options(), out, concurrency: 1 })) {
      expect(groupId).toBe("lights/test/0");
      break;
    }
    const rest: string[] = [];
    for await (const episode of play({ ...options(), out })) rest.push(episode.rolloutId);
    expect(rest).not.toContain("lights/test/0#0");
    const run = await readRun(out);
    const ids = [];
    for await (const { rolloutId } of run.episodes()) ids.push(rolloutId);
    expect(new Set(ids).size).toBe(6);
    let rows = 0;
    for await (const sample of run.samples()) {
      expect(verifySample(sample)).toEqual([]);
      rows += 1;
    }
    expect(rows).toBe(6);
    expect(await run.evaluation()).toMatchObject({ episodes: { planned: 6, scored: 6 } });
  });

  test("yields a complete group with a first attempt of an earlier start", async () => {
    const about = { ...options(), out: path.join(scratch, "begun-group"), concurrency: 1 };
    const seen: unknown[] = [];
    const stop = new AbortController();
    const onEpisode = (episode: Episode): void => {
      seen.push(episode.rolloutId, episodeSamples(episode));
      stop.abort(new Error("enough"));
    };
    const first = rollout({ ...about, signal: stop.signal, onEpisode });
    await expect(first).rejects.toThrow("enough");
    const found: unknown[] = [];
    const groups: Record<string, readonly string[]> = {};
    for await (const { groupId, episodes } of rollout(about)) {
      groups[groupId] = episodes.map(({ rolloutId }) => rolloutId);
      const { rolloutId, samples } = episodes[0]!;
      if (found.length === 0) found.push(rolloutId, samples);
    }
    expect(groups).toEqual({
      "lights/test/0": ["lights/test/0#0", "lights/test/0#1"],
      "lights/test/1": ["lights/test/1#0", "lights/test/1#1"],
      "lights/test/2": ["lights/test/2#0", "lights/test/2#1"],
    });
    // Its rows are the same, read from the disk.
    expect(found).toEqual(seen);
  });

  test("keeps the groups of a folder beyond a lower number of groups", async () => {
    const out = path.join(scratch, "fewer-groups");
    for (const groups of [4, 2]) {
      const about = { ...options(), out, epochs: "endless", groups, format: "slime" } as const;
      for await (const _ of rollout(about)) {
        // The test reads the written file.
      }
      const { violations } = await verifyRun(out);
      expect(violations).toEqual([]);
      const summary = JSON.parse(await readFile(path.join(out, "summary.json"), "utf8")) as object;
      expect(summary).toMatchObject({ finished: 8, slime: { groups: 4, rows: 8 } });
    }
  });

  test("samples trees, each attempt once, and records as configured", async () => {
    const repeatable = { ...environment, repeatable: true };
    const settings = { ...options(), environment: repeatable, tasks: [1] };
    const out = path.join(scratch, "tree");
    const from: unknown[] = [];
    for await (const { episodes } of rollout({ ...settings, out, branchAt: "1" })) {
      from.push(...episodes.map(({ forkedFrom }) => forkedFrom));
    }
    expect(from).toEqual([undefined, { rolloutId: "lights/test/1#0", turnIndex: 1 }]);
    expect(await recordedBytes(out)).toBeGreaterThan(0);
    const other = async (more: object) => await rollout({ ...settings, out, ...more });
    await expect(other({ branchAt: "0" })).rejects.toThrow('branch-at was "1" and is "0"');
    await expect(other({ branchAt: "1", record: "none" })).rejects.toThrow(
      'Cannot branch (branchAt, or --branch-at) where record is "none"',
    );
    const bare = path.join(scratch, "bare");
    for await (const _ of rollout({ ...settings, out: bare, record: "none" }));
    expect(await recordedBytes(bare)).toBe(0);
  });

  test("refuses a folder that was played with another environment, model or module", async () => {
    const modelDir = path.join(scratch, "model");
    await cp(smallModelFolder, modelDir, { recursive: true });
    const module = path.join(scratch, "lights.mjs");
    const source = `export default {
      name: "lights", source: "here", splits: { test: 1 }, tools: [], policyText: "",
      task: (split, index) =>
        ({ id: "lights/test/0", environment: "lights", split, index, instruction: "On!", data: {} }),
      open: async () => ({ score: async () => ({ reward: 1 }), close: async () => {} }),
    };`;
    await writeFile(module, source);
    const engine: Engine = {
      ...preparedEngine([]),
      generate: async (...call) =>
        await preparedEngine([{ outputIds: [smallModelEndId] }]).generate(...call),
    };
    const playIn = async (parts: Partial<RolloutOptions>): Promise<void> => {
      const out = path.join(scratch, `changed ${parts.out}`);
      for await (const _ of rollout({ engine, attempts: 1, maxTurns: 1, ...parts, out }));
    };
    const byName = { environment: module, model: modelDir, out: "named" };
    const given = {
      environment,
      renderer,
      user: createScriptedUser({ lines: ["On!"] }),
      out: "given",
    };
    for (const parts of [byName, given]) {
      await playIn(parts);
      await playIn(parts);
    }
    await expect(
      playIn({ ...given, environment: { ...environment, name: "lamps" } }),
    ).rejects.toThrow('environment was "lights" and is "lamps"');
    await expect(playIn({ ...given, user: { ...given.user, strategy: "other" } })).rejects.toThrow(
      'user was "scripted" and is "other"',
    );
    await expect(
      playIn({ ...given, renderer: { ...renderer, stopTokenIds: [1] } }),
    ).rejects.toThrow("the identity of its episodes has changed: stopTokens was");
    await appendFile(path.join(modelDir, "tokenizer.json"), "\n");
    await expect(playIn(byName)).rejects.toThrow("has changed: tokenizer was");
    await cp(smallModelFolder, modelDir, { recursive: true });
    await writeFile(module, source.replace("reward: 1", "reward: 0"));
    await expect(playIn(byName)).rejects.toThrow("has changed: environmentData was");
  });

  test("yields and writes no secret that the settings name", async () => {
    const secret = "sk-library-secret-key";
    vi.stubEnv("LIGHTS_KEY", secret);
    process.argv.push(secret);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      process.argv.pop();
    });
    const telling = defineEnvironment({
      name: "telling",
      tasks: [{ instruction: "On, please." }],
      initialState: () => ({}),
      policy: "",
      tools: { switch_on: { description: "Switch on.", execute: () => `done with ${secret}` } },
      score: () => 1,
    });
    const out = path.join(scratch, "secrets");
    const settings = { ...options(), environment: telling, apiKeyEnv: "LIGHTS_KEY", out };
    const locks: string[] = [];
    const script = path.basename(process.argv[1]!, ".js");
    for await (const { samples, ...episode } of play(settings)) {
      const said = await renderer.codec.decode(samples[0]!.tokenIds);
      expect(`${JSON.stringify(episode)}${said}`).not.toContain(secret);
      if (episode.sampleIndex === 0) expect(said).toContain("done with [redacted]");
      locks.push(await readFile(path.join(out, "run.lock"), "utf8"));
    }
    expect(locks.map((lock) => (JSON.parse(lock) as { command: string }).command)).toEqual([
      script,
      script,
    ]);
    expect(locks.join("")).not.toContain(secret);
    const names = (await readdir(out)).filter((name) => name !== "run.lock");
    const texts = await Promise.all(names.map((name) => readFile(path.join(out, name), "utf8")));
    expect(texts.join("")).not.toContain(secret);
  });

  test("refuses a key in place of a variable's name before it writes anything", async () => {
    const pasted = "sk-pasted-0123456789abcdef";
    for (const [option, flag] of [
      ["apiKeyEnv", "--api-key-env"],
      ["userApiKeyEnv", "--user-api-key-env"],
    ] as const) {
      const out = path.join(scratch, `pasted-${option}`);
      const refused = rollout({ ...options(), out, [option]: pasted });
      await expect(refused).rejects.toThrow(
        new UsageError(
          `Cannot use ${flag}: its value is not the name of a variable that is set, expected the name of ` +
            "the variable that holds the secret, and not the secret itself",
        ),
      );
      await expect(stat(out)).rejects.toThrow("ENOENT");
    }
  });

  test("reports why it waits for a folder that another machine locks, and stops waiting when it is aborted", async () => {
    const out = path.join(scratch, "held");
    await mkdir(out);
    const place = { pid: 5, host: "elsewhere", bootId: "other", pidNamespace: "other" };
    const holder = {
      format: 1,
      id: "abc",
      since: "2026-11-23T10:05:00.000Z",
      command: "x",
      ...place,
    };
    const text = `${JSON.stringify(holder)}\n`;
    await writeFile(path.join(out, "run.lock"), text);
    const stop = new AbortController();
    const reason = new Error("that is all");
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => stop.abort(reason));
    onTestFinished(() => warned.mockRestore());
    const { signal } = stop;
    await expect(rollout({ ...options(), out, signal })).rejects.toBe(reason);
    expect(warned.mock.calls).toEqual([
      [
        `${out} is locked by process 5 on elsewhere since 2026-11-23T10:05:00.000Z (x): waiting until it gives a ` +
          "sign of life or has given none for 120 s",
      ],
    ]);
    expect(await readdir(out)).toEqual(["run.lock"]);
    expect(await readFile(path.join(out, "run.lock"), "utf8")).toBe(text);
  });

  test("refuses a key that is a part of the environment's name, and creates no folder", async () => {
    vi.stubEnv("LIGHTS_KEY", "lights-on");
    onTestFinished(() => void vi.unstubAllEnvs());
    const out = path.join(scratch, "named");
    const named = { ...environment, name: "all-lights-on" };
    const settings = { ...options(), environment: named, apiKeyEnv: "LIGHTS_KEY", out };
    await expect(rollout(settings)).rejects.toThrow(
      "Cannot start a run of all-lights-on: a known key or password is a part of the environment's name",
    );
    expect(await readdir(scratch)).not.toContain("named");
  });

  test("stops by its signal, and reports unusable options", async () => {
    const stop = new AbortController();
    const playOn = async () => {
      for await (const _ of rollout({ ...options(), concurrency: 1, signal: stop.signal })) {
        stop.abort(new Error("enough"));
      }
    };
    await expect(playOn()).rejects.toThrow("enough");
    const first = async (more: object) => await rollout({ ...options(), ...more });
    await expect(first({ environment: { name: "x" } })).rejects.toThrow(
      "expected what defineEnvironment()",
    );
    for (const [member, value, fault] of [
      ["policyText", undefined, 'no "policyText", expected a text'],
      ["policyText", 5, '"policyText" of the wrong form, expected a text'],
      ["tools", undefined, 'no "tools", expected a list of what toolFromOpenAi() returns'],
      ["task", undefined, 'no "task", expected a function'],
    ] as const) {
      await expect(first({ environment: { ...environment, [member]: value } })).rejects.toThrow(
        new UsageError(`Cannot use environment lights: it has ${fault}`),
      );
    }
    await expect(first({ split: "train" })).rejects.toThrow('Cannot find split "train" of lights');
    await expect(first({ maxTurn: 3 })).rejects.toThrow('Cannot use "max-turn": unknown setting');
    // In their places others would play.
    for (const [name, part, found] of [
      ["agent", () => {}, "a function"],
      ["user", () => {}, "a function"],
      ["environment", null, "null"],
    ] as const) {
      await expect(first({ [name]: part })).rejects.toThrow(
        `Cannot use ${name}: it is ${found}, expected an object or a name`,
      );
    }
    await expect(first({ renderer: undefined })).rejects.toThrow("Missing --model");
    await expect(first({ url: undefined })).rejects.toThrow("Missing --url");
  });

  test("stops if one episode after another fails", async () => {
    const broken = defineEnvironment({
      name: "broken",
      tasks: Array.from({ length: 50 }, () => ({ instruction: "?" })),
      initialState: () => {
        throw new Error("no disk");
      },
      policy: "",
      tools: {},
      score: () => 0,
    });
    const outcomes: string[] = [];
    const failing = rollout({
      ...options(),
      environment: broken,
      samples: 1,
      attempts: 1,
      maxFailures: 3,
      concurrency: 1,
      onEpisode: ({ outcome }) => void outcomes.push(outcome),
    });
    await expect(failing).rejects.toThrow(
      "Cannot continue: 3 episodes failed in a row: initialState() of broken",
    );
    expect(outcomes).toEqual(["failed", "failed", "failed"]);
  });
});

describe("evaluate()", () => {
  test("counts its episodes, also if a tool changes the working directory", async () => {
    const before = process.cwd();
    onTestFinished(() => process.chdir(before));
    const home = await mkdtemp(path.join(scratch, "home-"));
    const elsewhere = await mkdtemp(path.join(scratch, "elsewhere-"));
    process.chdir(home);
    const roaming = defineEnvironment({
      name: "roaming",
      tasks: [{ instruction: "On, please." }],
      initialState: () => ({ on: 0 }),
      policy: "",
      tools: {
        switch_on: {
          description: "Switch on.",
          execute: (_, state) => {
            process.chdir(elsewhere);
            return (state.on += 1);
          },
        },
      },
      score: ({ on }) => on > 0,
    });
    const { samples: trials, ...rest } = options();
    const evaluation = await evaluate({ ...rest, trials, environment: roaming, out: "runs/first" });
    expect(evaluation.averageReward?.value).toBe(0.5);
    expect(await readdir(elsewhere)).toEqual([]);
  });

  test("has the defaults of turnwright eval", async () => {
    const { toRunSettings } = await import("../cli/eval-settings.ts");
    const out = path.join(scratch, "as-eval");
    const shared = {
      model: smallModelFolder,
      user: "scripted",
      tasks: "0",
      trials: 2,
      out,
    } as const;
    await evaluate({ ...shared, environment: "storefront", url: server.url });
    const { configuration } = (await readRun(out)).manifest;
    const asked = toRunSettings({ ...shared, env: "storefront", url: [server.url] });
    expect(configuration).toEqual(describeSettings(readRunConfig(asked).settings).configuration);
    expect(configuration).toMatchObject({ temperature: 0, samples: 2 });
    await evaluate({ ...options(), tasks: "0", temperature: 0.5, out: `${out}-warm` });
    const warm = (await readRun(`${out}-warm`)).manifest.configuration;
    expect(warm["temperature"]).toBe(0.5);
  });

  test("refuses settings that an evaluation lacks", async () => {
    const { samples: trials, ...rest } = options();
    const cases = { epochs: "2", groups: 3, branchAt: "1", "branch-at": "1" };
    for (const [name, value] of Object.entries(cases)) {
      const setting = name === "branchAt" ? "branch-at" : name;
      const measured = evaluate({ ...rest, trials, [name]: value });
      await expect(measured).rejects.toThrow(
        new UsageError(
          `Cannot use ${setting} in an evaluation: it plays each task as often as it has trials, each from the ` +
            "beginning, expected trials alone",
        ),
      );
    }
  });

  test("measures in memory and in a folder alike", async () => {
    const { samples: trials, ...rest } = options();
    const out = path.join(scratch, "evaluation");
    for (const where of [{}, { out }, { out }]) {
      const evaluation = await evaluate({ ...rest, trials, ...where });
      expect(evaluation).toMatchObject({
        episodes: { planned: 6, finished: 6, scored: 6 },
        averageReward: { value: 1 / 6 },
      });
    }
  });
});
