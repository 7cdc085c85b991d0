import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run as aiSdkAgent } from "../../examples/ai-sdk-agent.ts";
import { z } from "zod";
import { verifyRun } from "../../src/verify/verify-run.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { defineEnvironment } from "../../src/environment/define-environment.ts";
import { RolloutError } from "../../src/errors.ts";
import { createCommandAgent } from "../../src/gateway/agent/command-agent.ts";
import type { ForeignAgent, ForeignRun } from "../../src/gateway/agent/foreign-agent.ts";
import { rollout } from "../../src/api/rollout.ts";
import type { RolloutOptions } from "../../src/api/rollout-options.ts";
import type { Episode } from "../../src/episode/episode.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { createClock } from "../../src/async/clock.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { storefrontRenderer } from "./storefront-session.fixture.ts";

const renderer = await storefrontRenderer();

/** Buttons to press, each once; the user leaves after the agent's first message. */
const environment = defineEnvironment({
  name: "buttons",
  tasks: Array.from({ length: 3 }, (_, index) => ({
    instruction: `Press button ${index}.`,
    index,
  })),
  policy: "Press buttons.",
  initialState: () => ({ pressed: [] as number[] }),
  tools: {
    press: {
      description: "Press a button.",
      parameters: z.object({ button: z.number() }),
      execute: ({ button }, state) => {
        state.pressed.push(button);
        return `pressed ${button}`;
      },
    },
  },
  score: ({ pressed }, { index }) => (pressed.includes(index) ? 1 : 0),
});

/** Presses the requested button, and says so. */
function pressingEngine(fails: () => RolloutError | undefined = () => undefined): Engine {
  let count = 0;
  return {
    kind: "pressing",
    async generate({ promptIds, stopTokenIds, requestId }, { signal, onTokens } = {}) {
      signal?.throwIfAborted();
      const failure = fails();
      if (failure !== undefined) throw failure;
      const shown = await renderer.codec.decode([...promptIds]);
      const asked = /Press button (\d)/.exec(shown)?.[1] ?? "9";
      const call = `{"name": "press", "arguments": {"button": ${asked}}}`;
      const text = shown.includes(`pressed ${asked}`)
        ? `Done, ${count++}.`
        : `<tool_call>\n${call}\n</tool_call>`;
      const outputIds = [...(await renderer.codec.encode(text)), stopTokenIds[0]!];
      const logprobs = outputIds.map(() => -0.5);
      onTokens?.({ tokenIds: outputIds, logprobs });
      const piece = { requestId, tokenCount: outputIds.length, policyVersion: "v1" };
      return {
        outputIds,
        logprobs,
        finish: { type: "stop", matched: stopTokenIds[0]! },
        pieces: [{ ...piece, finish: "stop" }],
        discarded: [],
      };
    },
    describe: async () => ({
      kind: "pressing",
      logprobConvention: "tempered",
      contextLength: 4000,
      policyVersion: "v1",
    }),
    close: async () => {},
  };
}

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-agent-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const base = (): RolloutOptions => ({
  environment,
  renderer,
  engine: pressingEngine(),
  agent: aiSdk,
  user: "scripted",
  attempts: 1,
  "max-failures": 100,
});

const aiSdk: ForeignAgent = { run: aiSdkAgent };

interface Played {
  readonly episode: Episode;
  readonly samples: readonly Sample[];
}

async function play(options: RolloutOptions): Promise<Played[]> {
  const played: Played[] = [];
  for await (const { episodes } of rollout({ ...base(), ...options })) {
    for (const { samples, ...episode } of episodes) played.push({ episode, samples });
  }
  return played.toSorted((a, b) => (a.episode.rolloutId < b.episode.rolloutId ? -1 : 1));
}

async function playOne(agent: ForeignAgent, options: RolloutOptions = {}) {
  const [played] = await play({ tasks: [0], ...options, agent });
  return played!;
}

/** One turn of the policy, asked for without any SDK. */
async function ask({ baseUrl, apiKey, fetch }: ForeignRun, content: string): Promise<Response> {
  return await fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }),
  });
}

describe("rollout() with an external agent", () => {
  test("plays tasks, groups and scoring as with a built-in one", async () => {
    const groups: string[] = [];
    for await (const group of rollout({ ...base(), samples: 2, out: dir })) {
      groups.push(group.groupId);
      for (const { samples, ...episode } of group.episodes) {
        expect(episode).toMatchObject({
          format: 1,
          environment: "buttons",
          outcome: "completed",
          stopReason: "user-left",
          reward: 1,
          attempt: 1,
          counts: { turnCount: 2, toolCallCount: 1 },
        });
        expect(samples).toHaveLength(1);
      }
    }
    expect(groups.toSorted()).toEqual([0, 1, 2].map((index) => `buttons/test/${index}`));
    const verified = await verifyRun(dir);
    expect(verified).toMatchObject({ episodes: 6, samples: 6, isFinished: true, violations: [] });
    // No part of it could be replayed, so there is no recording.
    await expect(readFile(path.join(dir, "recording.jsonl"), "utf8")).resolves.toBe("");
  });

  test("a run that was stopped in the middle plays the missing episodes", async () => {
    const first: string[] = [];
    for await (const { episodes } of rollout({ ...base(), concurrency: 1, out: dir })) {
      first.push(episodes[0]!.rolloutId);
      break;
    }
    const rest = await play({ out: dir });
    expect(rest.map(({ episode }) => episode.rolloutId)).toEqual(
      ["buttons/test/0#0", "buttons/test/1#0", "buttons/test/2#0"].filter(
        (rolloutId) => !first.includes(rolloutId),
      ),
    );
    expect((await verifyRun(dir)).violations).toEqual([]);
  });

  test("what the gateway did not enforce, refused or ignored is in summary.json", async () => {
    const search = { type: "web_search_20250305", name: "web_search" };
    const agent: ForeignAgent = {
      async run(given) {
        const messages = [{ role: "user", content: given.firstUserText }];
        const tools = given.tools.map(({ name, parameters }) => ({
          name,
          input_schema: parameters,
        }));
        for (const more of [{}, { messages: "none" }]) {
          const reply = await given.fetch(`${given.baseUrl}/v1/messages`, {
            method: "POST",
            headers: { "x-api-key": given.apiKey },
            body: JSON.stringify({
              model: "policy",
              max_tokens: 60,
              best_of: 2,
              tools: [search, ...tools],
              messages,
              ...more,
            }),
          });
          await reply.text();
        }
      },
    };
    // The second start adds what it plays to what it finds.
    for await (const _ of rollout({ ...base(), agent, concurrency: 1, out: dir })) break;
    await play({ agent, out: dir });
    const summary = JSON.parse(await readFile(path.join(dir, "summary.json"), "utf8")) as object;
    expect(summary).toMatchObject({
      gateway: {
        turnCount: 3,
        continuedCount: 0,
        roots: { first: 3 },
        notes: {},
        replayedCount: 0,
        undeliveredCount: 0,
        unenforced: { "tool web_search_20250305": 3 },
        leftOutCallCount: 0,
        refused: { "Cannot read messages: expected a list, not a string": 3 },
        ignoredFields: { best_of: 3 },
      },
      warning:
        "requests gave tools of a server, which the policy was not shown: web_search_20250305 3",
    });
    expect((await verifyRun(dir)).violations).toEqual([]);
  });

  test("an agent that throws has failed, is tried again, and has no reward", async () => {
    let count = 0;
    const flaky: ForeignAgent = {
      async run(given) {
        if (count++ === 0) throw new Error("a bug of the agent's");
        await aiSdkAgent(given);
      },
    };
    expect((await playOne(flaky, { attempts: 2 })).episode).toMatchObject({
      reward: 1,
      attempt: 2,
    });
    const { episode, samples } = await playOne({
      run: async (given) => {
        // The message counts once the agent has read it.
        await (await ask(given, "Press button 0.")).text();
        throw new Error("a bug of the agent's");
      },
    });
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: { party: "agent", code: "agent/exception" },
      tree: [{ cause: "first", turnIndex: 0 }],
    });
    expect(samples[0]).toMatchObject({ outcome: "failed" });
    expect(samples[0]).not.toHaveProperty("reward");
  });

  test("an agent is notified that the world is done, and its later requests train nothing", async () => {
    const answers: [status: number, body: string][] = [];
    const environmentThatEnds = defineEnvironment({
      name: "exit",
      tasks: [{ instruction: "Leave." }],
      policy: "Leave.",
      initialState: () => ({ isLeft: false }),
      tools: {
        leave: {
          description: "Leave.",
          parameters: z.object({}),
          ends: true,
          execute: (_, state) => {
            state.isLeft = true;
            return "bye";
          },
        },
      },
      score: ({ isLeft }) => (isLeft ? 1 : 0),
    });
    for (const isLoud of [false, true]) {
      const { episode, samples } = await playOne(
        {
          async run(given) {
            await (await ask(given, "Press button 0.")).text();
            await given.tools[0]!.execute({});
            const after = await ask(given, "And now?");
            answers.push([after.status, await after.text()]);
            if (isLoud) throw new Error("410");
          },
        },
        { environment: environmentThatEnds },
      );
      expect(episode).toMatchObject({
        outcome: "completed",
        stopReason: "terminal-tool",
        reward: 1,
        counts: { turnCount: 1 },
        tree: { length: 1 },
      });
      expect(samples).toHaveLength(1);
    }
    expect(answers.map(([status]) => status)).toEqual([410, 410]);
    for (const [, body] of answers) expect(body).toContain("the world of task exit/test/0 is done");
  });

  test("an agent that never asks the policy has failed", async () => {
    const { episode } = await playOne({ run: async () => {} });
    expect(episode.failure?.code).toBe("agent/silent");
  });

  test("an agent that is silent until the time is over has failed", async () => {
    const hand = createManualClock();
    const playing = playOne(
      { run: async () => await new Promise(() => {}) },
      { clock: createClock(hand), episodeTimeout: 5 },
    );
    await hand.untilSleeping(5000);
    await hand.advance(5000);
    expect((await playing).episode.failure?.code).toBe("agent/timeout");
  });

  test("an outage of the engine is the engine's failure, even if the agent hides it", async () => {
    const failure = new RolloutError("engine/unreachable", "no server");
    const { episode } = await playOne(
      {
        run: async (given) => {
          await ask(given, "Press button 0.");
        },
      },
      { engine: pressingEngine(() => failure) },
    );
    expect(episode).toMatchObject({ outcome: "failed", failure: { code: "engine/unreachable" } });
  });

  test("an outage that the agent recovered from is not a failure", async () => {
    let count = 0;
    const engine = pressingEngine(() =>
      count++ === 0 ? new RolloutError("engine/timeout", "late") : undefined,
    );
    const agent: ForeignAgent = {
      run: async (given) => {
        expect((await ask(given, "Press button 0.")).status).toBe(503);
        await aiSdkAgent(given);
      },
    };
    expect((await playOne(agent, { engine })).episode).toMatchObject({ reward: 1 });
  });

  test("an error in the environment's tool is not the agent's failure", async () => {
    const broken = defineEnvironment({
      name: "broken",
      tasks: [{ instruction: "Press button 0." }],
      policy: "",
      tools: {
        press: {
          description: "Press a button.",
          execute: () => {
            throw new Error("the database is gone");
          },
        },
      },
      score: () => 1,
    });
    const { episode } = await playOne(aiSdk, { environment: broken as never });
    expect(episode.failure).toMatchObject({ party: "environment" });
  });

  test("a limit that the policy meets truncates the episode, which is scored", async () => {
    const { episode } = await playOne(aiSdk, { maxTurns: 1 });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "max-turns", reward: 1 });
    const full = await playOne(aiSdk, { maxContext: 10 });
    expect(full.episode).toMatchObject({ outcome: "truncated", stopReason: "context-full" });
    expect(full.samples).toEqual([]);
  });

  test.each([
    { asks: "/v1/messages/count_tokens", throws: false, stopReason: "finished" },
    { asks: "/v1/messages/count_tokens", throws: true, failure: "agent/exception" },
    { asks: "/v1/messages", throws: false, stopReason: "finished" },
    { asks: "/v1/messages", throws: true, stopReason: "context-full" },
  ])("a conversation that is too long is that request's answer: %o", async (asked) => {
    const { asks, throws, stopReason, failure } = asked;
    const messages = Array.from({ length: 5000 }, () => ({ role: "user", content: "Go on." }));
    const agent: ForeignAgent = {
      run: async (run) => {
        await (await ask(run, run.firstUserText)).json();
        const { status } = await run.fetch(run.baseUrl + asks, {
          method: "POST",
          headers: { authorization: `Bearer ${run.apiKey}` },
          body: JSON.stringify({ model: "m", max_tokens: 9, messages }),
        });
        expect(status).toBe(400);
        if (throws) throw new Error("too long for me");
      },
    };
    const { episode } = await playOne(agent);
    expect(episode.turns).toHaveLength(1);
    if (failure !== undefined) return expect(episode.failure).toMatchObject({ code: failure });
    const outcome = stopReason === "finished" ? "completed" : "truncated";
    expect(episode).toMatchObject({ outcome, stopReason, reward: 0 });
  });

  test("a program in another process listens, calls, speaks, and is scored", async () => {
    const file = path.join(dir, "agent.mjs");
    await writeFile(file, program);
    const played = await play({
      agent: createCommandAgent(`node ${file}`),
      out: path.join(dir, "run"),
    });
    expect(played.map(({ episode: { reward, stopReason } }) => [reward, stopReason])).toEqual([
      [1, "user-left"],
      [1, "user-left"],
      [1, "user-left"],
    ]);
    expect((await verifyRun(path.join(dir, "run"))).violations).toEqual([]);
  });

  test("a stopped program's child processes end with it", async () => {
    const mark = path.join(dir, "pid");
    const stop = new AbortController();
    const command = `(echo $$ > ${mark}; sleep 600) & wait`;
    const playing = play({ tasks: [0], agent: createCommandAgent(command), signal: stop.signal });
    const pid = Number(await fileWithText(mark));
    stop.abort(new Error("stopped"));
    await expect(playing).rejects.toThrow("stopped");
    await gone(pid);
  });
});

/** An agent in any language: it uses only HTTP. */
const program = `
const { TURNWRIGHT_TASK_URL: shop, OPENAI_BASE_URL: base, OPENAI_API_KEY: key } = process.env;
const post = async (url, body, headers = {}) =>
  await (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).json();
const { policyText, firstUserText, tools } = await (await fetch(shop + "/task")).json();
const messages = [
  { role: "system", content: policyText },
  { role: "user", content: firstUserText },
];
for (;;) {
  const headers = { authorization: "Bearer " + key };
  const reply = await post(base + "/chat/completions", { model: "m", messages, tools }, headers);
  const { message } = reply.choices[0];
  messages.push(message);
  for (const { id, function: call } of message.tool_calls ?? []) {
    const { observation } = await post(shop + "/tools/" + call.name, JSON.parse(call.arguments));
    messages.push({ role: "tool", tool_call_id: id, content: observation });
  }
  if (message.tool_calls !== undefined) continue;
  const { text } = await post(shop + "/say", { text: message.content });
  if (text === null) break;
  messages.push({ role: "user", content: text });
}
const missing = await fetch(shop + "/tools/absent", { method: "POST" });
const session = await fetch(new URL("/sessions", shop), { method: "POST" });
if (missing.status !== 404 || session.status !== 404) process.exit(7);
`;

async function fileWithText(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, "utf8").catch(() => "");
    if (text.trim() !== "") return text;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Resolves once there is no such process any more. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
