import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import type { Episode } from "../episode/episode.ts";
import { toolsFromOpenAi } from "../message.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { Redactor } from "../secrets/redactor.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { noSpending } from "../user/chat/add-spending.ts";
import type { User } from "../user/user.ts";
import { lamps, lampSetup } from "./lamp-run.fixture.ts";
import { fakeMachine } from "./machine.fixture.ts";
import type { Sample } from "../trajectory/sample.ts";
import { replayEpisode } from "./recording/replay-episode.ts";
import { RunFolder } from "./folder/run-folder.ts";
import { testManifest } from "./folder/run-folder.fixture.ts";
import { startRun } from "./start-run.ts";
import { createTaskList } from "./schedule/task-source.ts";

const secret = "sk-very-secret-key";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-redacted-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** A user with a model that leaks the secret. */
function tellingUser(repeatable: boolean): User {
  return {
    strategy: "telling",
    repeatable,
    open: (_task, { outside }) => ({
      begin: async () => {
        const say = async () => ({ text: `Lamp on, please. My key is ${secret}.` });
        return (await (repeatable ? outside!("the user's model", say) : say())).text;
      },
      reply: async () => ({ text: `Bye, ${secret}!`, leaves: true }),
      usage: () => noSpending,
    }),
  };
}

/** A lamp that asks a meter, which refuses and names the key that it was given. */
function meteredLamps(repeatable: boolean): Environment {
  const plain = lamps(1);
  return {
    ...plain,
    repeatable,
    async open(task, options) {
      const world = await plain.open(task, options);
      return {
        ...world,
        policyText: `You switch the lamp of ${secret}.`,
        async step(action, about) {
          const step = await world.step(action, about);
          if (action.type !== "call") return step;
          const why = await options.outside!(`GET /meter?key=${secret}`, () =>
            Promise.reject(new Error(`401: ${secret} is no key`)),
          ).catch((error: unknown) => (error as Error).message);
          return { ...step, observation: `on (${why})` };
        },
      };
    },
  };
}

let pid = 1;

/** Plays the only attempt, or the rest of it; `stopAtTurn` stops the run in the middle. */
async function play(repeatable: boolean, stopAtTurn?: number) {
  const environment = meteredLamps(repeatable);
  const stop = new AbortController();
  const asked: number[] = [];
  const [stopId] = createCharacterRenderer().stopTokenIds;
  const engine: Engine = {
    ...preparedEngine([]),
    async generate(request, options) {
      const turn = Math.floor((request.promptIds.filter((id) => id === stopId).length - 2) / 2);
      asked.push(turn);
      if (turn === stopAtTurn) {
        stop.abort(new Error("stopped"));
        return await new Promise<never>(() => {});
      }
      const reply = says(turn === 0 ? switchCall : "Goodbye!");
      return await preparedEngine([reply]).generate(request, options);
    },
  };
  const setup = { ...lampSetup({ environment, engine }), user: tellingUser(repeatable) };
  pid += 1;
  const lock = { machine: fakeMachine({ pid }) };
  await using folder = await RunFolder.open(dir, testManifest, { retryFailed: false, lock });
  const episodes: Episode[] = [];
  const run = startRun({
    source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
    setup,
    folder,
    signal: stop.signal,
    redactor: new Redactor([secret]),
    grouping: { size: 1 },
    admission: { concurrency: 1 },
    onEpisode: (episode) => episodes.push(episode),
  });
  await run.result.catch(() => {});
  const recorded = await folder.recordings.read("lamp/test/0#0");
  return { asked, setup, recorded, episode: episodes[0] };
}

async function everythingWritten(): Promise<string> {
  const names = (await readdir(dir)).filter((name) => name !== "run.lock");
  return (
    await Promise.all(names.map(async (name) => await readFile(path.join(dir, name), "utf8")))
  ).join("");
}

test("an episode in which a secret appeared is resumed unchanged after a stop, and no id contains the secret", async () => {
  expect((await play(true, 1)).asked).toEqual([0, 1]);
  const { asked, episode } = await play(true);
  expect(asked).toEqual([1]);
  expect(episode).toMatchObject({ attempt: 1, outcome: "completed", reward: 1 });
  const [segment] = episode!.segments;
  const said = await createCharacterRenderer().codec.decode(segment!.tokenIds);
  expect(said).toContain("My key is [redacted].");
  expect(said).toContain("on (401: [redacted] is no key)");
  expect(said).toContain("You switch the lamp of [redacted].");
  expect(said).not.toContain(secret);
  const text = await everythingWritten();
  expect(text).not.toContain(secret);
  expect(text).not.toContain("recording-dropped");
});

test.each([true, false])(
  "it is replayed to the byte if it is repeatable: %s",
  async (repeatable) => {
    const { asked, episode } = await play(repeatable);
    expect(asked).toEqual([0, 1]);
    expect(JSON.stringify(episode)).not.toContain(secret);
    const { recorded, setup } = await play(repeatable);
    const { segments: _ids, ...row } = episode!;
    const rows = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).split("\n");
    const { sampleHashes } = JSON.parse(rows[0]!) as { readonly sampleHashes: readonly string[] };
    const samples = (await readFile(path.join(dir, "samples.jsonl"), "utf8"))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as never);
    const stored = { recorded: recorded!, row: { ...row, sampleHashes }, samples };
    const redactor = new Redactor([secret]);
    expect(await replayEpisode(stored, { setup, redactor })).toMatchObject({ type: "identical" });
    const [sample] = samples as readonly Sample[];
    const { tokenIds } = sample!;
    const last = tokenIds.length - 1;
    const replaced = tokenIds.map((id, index) => (index === 7 ? 1 : id));
    const changes = [
      [
        { samples: [{ ...sample!, tokenIds: replaced }] },
        `[0].tokenIds[7] was 1 and is ${tokenIds[7]}`,
      ],
      [
        { samples: [{ ...sample!, tokenIds: tokenIds.slice(0, last) }] },
        `[0].tokenIds[${last}] was nothing and is ${tokenIds[last]}`,
      ],
      [{ row: { ...stored.row, reward: 0.5 } }, ".reward was 0.5 and is 1"],
      [
        { row: { ...stored.row, counts: { ...row.counts, more: { of: 1 } } } },
        '.counts.more was {"of":1} and is nothing',
      ],
    ] as const;
    for (const [change, place] of changes) {
      const verdict = await replayEpisode({ ...stored, ...change }, { setup, redactor });
      const file = "row" in change ? "episode" : "samples";
      expect(verdict).toMatchObject({ type: "differs", place: `${file}${place}` });
    }
  },
);

test("no secret of a part that all tasks share is shown to the policy", async () => {
  const plain = lamps(1);
  const tools = toolsFromOpenAi(
    [...plain.tools].map(({ openai }) =>
      parsePythonJson(
        stringifyPythonJson(openai).replace('"switch"', `"switch", "by": "${secret}"`),
      ),
    ),
    "tools",
  );
  const environment = { ...plain, tools, policyText: `You switch the lamp of ${secret}.` };
  const shown: number[][] = [];
  const engine: Engine = {
    ...preparedEngine([]),
    async generate(request, options) {
      shown.push([...request.promptIds]);
      return await preparedEngine([says("Goodbye!")]).generate(request, options);
    },
  };
  const setup = lampSetup({ environment, engine });
  const { agent } = setup;
  let given = "";
  const open: typeof agent.open = (start) => {
    given = start.tools.map(({ openai }) => stringifyPythonJson(openai)).join("\n");
    return agent.open(start);
  };
  const run = startRun({
    source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
    setup: { ...setup, agent: { ...agent, open } },
    redactor: new Redactor([secret]),
    grouping: { size: 1 },
    admission: { concurrency: 1 },
  });
  expect(await run.result).toMatchObject({ end: "finished", progress: { scored: 1 } });
  const text = await createCharacterRenderer().codec.decode(shown[0]!);
  expect(text).toContain("You switch the lamp of [redacted].");
  expect(given).toContain('"by": "[redacted]"');
  expect(text + given).not.toContain(secret);
});

test("a secret in every tool's definition fails the episode, and not the run", async () => {
  const environment = lamps(1);
  const run = startRun({
    source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
    setup: lampSetup({ environment, engine: preparedEngine([says("Goodbye!")]) }),
    redactor: new Redactor(["function"]),
    grouping: { size: 1, attempts: 1 },
    admission: { concurrency: 1 },
  });
  expect(await run.result).toMatchObject({
    end: "finished",
    progress: { failures: { "environment/exception": 1 } },
  });
});
