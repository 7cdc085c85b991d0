import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  noPython,
  openPython,
  say,
} from "../../src/environment/python/python-environment.fixture.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

if (noPython !== undefined) console.log(`skipped: ${noPython}`);

const root = path.resolve(import.meta.dirname, "../..");
const example = (name: string): string => path.join(root, "examples", name);
const modelDir = path.join(root, "models/storefront-2m");

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-python-"));
});
afterAll(async () => await rm(dir, { recursive: true, force: true }));

describe.skipIf(noPython !== undefined)("docs/python-environments.md", () => {
  test("the calendar is played, and its score names what differs", async () => {
    await using opened = await openPython(example("calendar_env.py"));
    const { environment } = opened;
    expect(environment.definedAt).toBe("calendar_env.py:5");
    expect(environment.tools.map(({ openai }) => openai.get("function"))).toEqual([
      expect.any(Map),
      expect.any(Map),
    ]);
    const world = await opened.world();
    const { signal } = new AbortController();
    expect(await call(world, "list_day", { day: "friday" })).toMatchObject({
      observation: '{"8": "Cy", "9": "Cy"}',
    });
    const early = { day: "friday", hour: 9n, who: "Ann" };
    expect(await call(world, "book", early)).toMatchObject({
      observation: "Error: friday 9 is not free",
      isError: true,
    });
    expect(await call(world, "book", { ...early, hour: "ten" })).toMatchObject({
      observation: "Error: hour must be integer (book takes day, hour, who)",
      isError: true,
    });
    expect(await call(world, "fly")).toMatchObject({
      observation: "Error: no tool fly, there are list_day, book",
    });
    const differs = await opened.world("test", 1);
    expect(await differs.score({ signal })).toMatchObject({
      reward: 0,
      details: { difference: { state: [{ table: "friday", record: "10", wanted: "Bo" }] } },
    });
    await call(world, "book", { ...early, hour: 10n });
    expect(await say(world, "Done.")).toMatchObject({ done: "user-left" });
    expect(await world.score({ signal })).toMatchObject({ reward: 1 });
  });

  test("the shop's customer reacts, and its reward has components", async () => {
    await using opened = await openPython(example("errand_env.py"), { processes: 2 });
    expect(opened.environment.splits).toEqual({ train: 8, test: 1 });
    const { signal } = new AbortController();
    const world = await opened.world("train", 3);
    expect(await say(world, "How many pears?")).toMatchObject({ observation: "4, please." });
    expect(await call(world, "sell", { count: 40n })).toMatchObject({
      observation: "Error: there are 20 pears",
    });
    expect(await call(world, "sell", { count: 4n })).toMatchObject({ observation: '{"left": 16}' });
    expect(await say(world, "Here you are.")).toMatchObject({ done: "user-left" });
    expect(await world.score({ signal })).toMatchObject({
      reward: 1.2,
      components: { sold: { value: 1, weight: 1 }, asked: { value: 1, weight: 0.2 } },
    });
    const greedy = await opened.world("test");
    expect(await call(greedy, "sell", { count: 20n })).toMatchObject({ done: "finished" });
  });

  test("the game answers texts", async () => {
    await using opened = await openPython(example("number_env.py"));
    const { signal } = new AbortController();
    const world = await opened.world();
    expect(await say(world, "50")).toEqual({
      observation: "Lower.",
      from: "user",
      source: "user",
    });
    expect(await say(world, "42")).toMatchObject({ observation: "Right.", done: "finished" });
    expect(await world.score({ signal })).toEqual({ reward: 1, details: { guesses: 2 } });
  });

  test("a run of the calendar verifies, resumes, and notices a changed file", async () => {
    const file = path.join(dir, "calendar_env.py");
    await cp(example("calendar_env.py"), file);
    const out = path.join(dir, "run");
    const flags = ["--engine", "reference", "--model", modelDir, "--max-tokens-per-turn", "40"];
    const play = async () =>
      await runCli(["rollout", "--env", file, "--samples", "2", "--out", out, ...flags]);
    const first = await play();
    expect(first.status, first.stderr).toBe(0);
    const verified = await runCli(["verify", out]);
    expect(jsonLines(verified.stdout)).toMatchObject([
      { samples: 4, episodes: 4, isFinished: true, violations: [] },
    ]);
    expect((await play()).status).toBe(0);
    await writeFile(file, `${await readFile(file, "utf8")}\n# changed\n`);
    const changed = await play();
    expect(changed.status).toBe(2);
    expect(changed.stderr).toContain("environment");
  });

  test("`env check` finds no error", async () => {
    const { status, stdout } = await runCli(["env", "check", example("errand_env.py")]);
    expect(stdout).toMatch(/^errand: .*; 0 errors, 0 warnings$/m);
    expect(status).toBe(0);
  });
});

const head = `from turnwright import Environment, TextEnvironment
env = Environment("e", policy="p", tasks=[{"instruction": "x"}])
`;
const tail = `
@env.score
def score(state): return 1.0
`;

describe.skipIf(noPython !== undefined)("mistakes of an environment's author", () => {
  test.each([
    ["def f(:\n", "SyntaxError: invalid syntax", ":3)"],
    [
      "import no_such_package\n",
      "lacks the package no_such_package (",
      ":3), install it there, name",
    ],
    [
      "@env.tool\ndef book(day): return 1\n",
      ":3 tool book(): 'day' has no type; write day: str",
      "",
    ],
    [
      "@env.tool\ndef book(day: bytes): return 1\n",
      "the type of 'day' cannot be shown to a model",
      "",
    ],
    [
      "@env.user\ndef user(world): return []\n",
      ":3 user: it asks for 'world', expected some of",
      "",
    ],
    ["raise RuntimeError('the database is down')\n", "RuntimeError: the database is down (", ":3)"],
    ["import sys; sys.exit(3)\n", "SystemExit: 3 (", ":3)"],
    ["env.tasks = []\n", ":2: split test has no tasks, expected some such as", ""],
    ["env.tasks = ['a']\n", 'task 0 of split "test": it is a str, expected a dict', ""],
    [
      "env.tasks = [{'q': 1}]\n",
      'task 0 of split "test": it has no instruction, expected a text',
      "",
    ],
    ["env.name = 'my env'\n", 'its name is "my env", expected letters', ""],
    ["env = 1\n", "name 'env' is not defined", ""],
    ["@env.reward\ndef reward(state): return 1\n", "an environment has no part 'reward'", ":3)"],
    [
      "import os; os._exit(4)\n",
      "the Python process python3 failed: it ended with exit code 4",
      "",
    ],
  ])("%j is named with its place", async (code, what, place) => {
    const isUndefined = code === "env = 1\n";
    const file = path.join(dir, "mistaken_env.py");
    await writeFile(file, isUndefined ? "@env.score\ndef score(): ..." : head + code + tail);
    const failure = await openPython(file).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    const { message } = failure as Error;
    expect(message).toMatch(/^Cannot (?:load|use) environment /);
    expect(message).toContain(what);
    expect(message).toContain(place);
  });

  test.each([
    ["x = 1\n", "defines no environment: it needs an Environment"],
    [head, "environment e has no score, expected @env.score"],
    [
      "from turnwright import TextEnvironment\nclass A(TextEnvironment):\n  name = 'a'\n  def tasks(self): return [{'instruction': 'x'}]\n",
      "A has no open(), expected one",
    ],
  ])("%j is refused", async (code, what) => {
    const file = path.join(dir, "refused_env.py");
    await writeFile(file, code);
    await expect(openPython(file)).rejects.toThrow(what);
  });

  test("a file that is absent, and an interpreter that is absent, are named", async () => {
    const absent = await runCli(["env", "list", "./absent_env.py"]);
    expect(absent.stderr).toMatch(
      /^turnwright: Cannot find environment \.\/absent_env\.py: \S+ is absent, expected a Python file$/m,
    );
    const named = await runCli(["env", "list", example("calendar_env.py"), "--python", "nopython"]);
    expect(named.stderr).toMatch(/Cannot find Python nopython: it does not run/);
    const other = await runCli(["env", "list", "storefront", "--python", "python3"]);
    expect(other.stderr).toMatch(/Cannot use --python with environment storefront/);
  });

  test.each([
    [
      "def step(self, text): return 1",
      "environment/bad-step",
      "step() returned 1, expected (text or None",
    ],
    [
      "def step(self, text): return None, False",
      "environment/bad-step",
      "no message, expected one or the end",
    ],
    ["def step(self, text): return text", "environment/bad-step", "step() returned 'hi', expected"],
  ])("%j of a text environment is reported", async (code, failure, what) => {
    const file = path.join(dir, "text_env.py");
    await writeFile(
      file,
      "from turnwright import TextEnvironment, TextEpisode\nclass E(TextEpisode):\n  first = 'go'\n" +
        `  def score(self): return 1\n  ${code}\nclass A(TextEnvironment):\n  name = 'a'\n  def tasks(self): return [{'instruction': 'x'}]\n` +
        "  def open(self, task, seed): return E()\n",
    );
    await using opened = await openPython(file);
    const world = await opened.world();
    await expect(say(world, "hi")).rejects.toMatchObject({
      code: failure,
      message: expect.stringContaining(what) as string,
    });
  });
});
