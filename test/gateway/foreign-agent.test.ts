import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createStorefrontUser } from "../../environments/storefront/storefront-user.ts";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import type { ColumnSpecs } from "../../src/columns/column-specs.ts";
import { memoryColumns, type ColumnStore } from "../../src/columns/column-store.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { InvariantError, describeStack } from "../../src/errors.ts";
import type { Action, Environment, Step, World } from "../../src/environment/environment.ts";
import { preparedEngine } from "../../src/episode/lamp-episode.fixture.ts";
import type { Episode } from "../../src/episode/episode.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { createCommandAgent } from "../../src/gateway/agent/command-agent.ts";
import type { ForeignAgent, ForeignRun } from "../../src/gateway/agent/foreign-agent.ts";
import { createForeignPlayer } from "../../src/gateway/agent/foreign-player.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { episodeSamples } from "../../src/run/folder/episode-samples.ts";
import { PolicyGate } from "../../src/run/policy/policy-gate.ts";
import { createClock } from "../../src/async/clock.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { withResolvers } from "../../src/async/with-resolvers.ts";
import { toolFromOpenAi } from "../../src/message.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";
import { createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import { withInventedColumns } from "../../src/testing/column-engine.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import {
  createExpertEngine,
  storefrontRenderer,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

/** An agent as a user might write it. */
const shopAgent: ForeignAgent = {
  async run({ tools, say, policyText, firstUserText, baseUrl, apiKey, fetch }: ForeignRun) {
    const openai = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, fetch, maxRetries: 0 });
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
      { role: "system", content: policyText },
      { role: "user", content: firstUserText },
    ];
    for (let turn = 0; turn < 30; turn++) {
      const { choices } = await openai.chat.completions.create({
        model: "policy",
        messages,
        tools: tools.map(({ name, description, parameters }) => ({
          type: "function" as const,
          function: { name, description, parameters },
        })),
      });
      const { message } = choices[0]!;
      messages.push(message);
      const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
      for (const { id, function: called } of calls) {
        const wanted = tools.find(({ name }) => name === called.name)!;
        const content = await wanted.execute(JSON.parse(called.arguments));
        messages.push({ role: "tool", tool_call_id: id, content });
      }
      if (calls.length > 0) continue;
      const answer = await say(message.content ?? "");
      if (answer === undefined) return;
      messages.push({ role: "user", content: answer });
    }
  },
};

async function play(
  open: StorefrontSession,
  agent: ForeignAgent,
  more: object = {},
  around: object = {},
) {
  const task = storefront.task("test", 0);
  const assignment = { task, rolloutId: `${task.id}#2`, groupId: task.id, sampleIndex: 2, seed: 0 };
  const setup = {
    environment: storefront,
    user: createStorefrontUser(),
    limits: defaultLimits,
    engine: open.engine,
    renderer: await storefrontRenderer(),
    sampling: {},
    now: () => 0,
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      vocabulary: [],
      toolUsePolicy: toolUsePolicies.many,
    }),
    ...more,
  };
  const player = createForeignPlayer(agent);
  try {
    const { signal } = new AbortController();
    return await player.play(assignment, setup, { signal, ...around });
  } finally {
    await player.close();
  }
}

/** The customer's expert learns the agent's actions, so that it can continue. */
function mirrored(open: StorefrontSession, agent: ForeignAgent): ForeignAgent {
  return {
    async run(run) {
      await open.shop.begin();
      await agent.run({
        ...run,
        say: async (text) => {
          await open.shop.say(text);
          return await run.say(text);
        },
        tools: run.tools.map((tool) => ({
          ...tool,
          execute: async (given) => {
            await open.shop.call(tool.name, given);
            return await tool.execute(given);
          },
        })),
      });
    },
  };
}

const shop = storefront as Environment;
const never = async (): Promise<never> => await new Promise(() => {});

describe("createForeignPlayer()", () => {
  test("plays an agent of any making over a task, scored as the built-in ones are", async () => {
    await using open = await openStorefrontSession(0);
    const episode = await play(open, mirrored(open, shopAgent));
    expect(episode).toMatchObject({
      rolloutId: "storefront/test/0#2",
      environment: "storefront",
      split: "test",
      taskIndex: 0,
      sampleIndex: 2,
      outcome: "completed",
      stopReason: "user-left",
      reward: 1,
    });
    const samples = episodeSamples(episode);
    expect(samples).toHaveLength(1);
    expect(verifySample(JSON.parse(JSON.stringify(samples[0])))).toEqual([]);
    expect(samples[0]!.turns).toHaveLength(open.engine.prompts.length);
  });

  test.each([true, false])(
    "plays for several runs, each with its own sampling, limits and date (at an address: %s)",
    async (needsAddress) => {
      const asked: unknown[] = [];
      const renderer = createCharacterRenderer();
      const days: (string | undefined)[] = [];
      const dated: Renderer = {
        ...renderer,
        prompt: async (conversation) => {
          days.push(conversation.now?.toISOString());
          return await renderer.prompt(conversation);
        },
      };
      const engine = preparedEngine(Array.from({ length: 5 }, () => ({ outputIds: [72, 105] })));
      const noting: Engine = {
        ...engine,
        generate: async (request, options) => {
          const { sampling, maxNewTokens } = request;
          asked.push({ temperature: sampling.temperature, maxNewTokens, day: days.at(-1) });
          return await engine.generate(request, options);
        },
      };
      const held = withResolvers();
      const begun = withResolvers();
      let count = 0;
      const agent: ForeignAgent = {
        needsAddress,
        async run({ baseUrl, apiKey, fetch, firstUserText }) {
          const ask = async (): Promise<void> => {
            const messages = [{ role: "user", content: firstUserText }];
            const reply = await (needsAddress ? globalThis.fetch : fetch)(
              `${baseUrl}/v1/chat/completions`,
              {
                method: "POST",
                headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
                body: JSON.stringify({ model: "policy", messages }),
              },
            );
            expect(reply.status).toBe(200);
            await reply.text();
          };
          const isFirst = count++ === 0;
          await ask();
          if (!isFirst) return;
          begun.resolve();
          await held.promise;
          await ask();
        },
      };
      const task = storefront.task("test", 0);
      const player = createForeignPlayer(agent);
      const playOne = async (name: string, temperature: number, day: string) =>
        await player.play(
          { task, rolloutId: `${name}#0`, groupId: name, sampleIndex: 0, seed: 0 },
          {
            environment: storefront,
            user: createStorefrontUser(),
            engine: noting,
            now: () => 0,
            limits: { ...defaultLimits, maxTokensPerTurn: 10 + temperature },
            renderer: dated,
            sampling: { temperature },
            promptTime: new Date(day),
            agent: createToolCallingAgent({
              parser: findToolCallParser("qwen25"),
              vocabulary: [],
              toolUsePolicy: toolUsePolicies.many,
            }),
          },
          { signal: new AbortController().signal },
        );
      try {
        const first = playOne("a", 1, "2026-01-01T12:00:00Z");
        await begun.promise;
        await playOne("b", 0, "2026-01-02T12:00:00Z");
        await playOne("b", 0, "2026-01-02T12:00:00Z");
        // The first run's is not closed under it.
        held.resolve();
        await first;
      } finally {
        await player.close();
      }
      const a = { temperature: 1, maxNewTokens: 11, day: "2026-01-01T12:00:00.000Z" };
      const b = { temperature: 0, maxNewTokens: 10, day: "2026-01-02T12:00:00.000Z" };
      expect(asked).toEqual([a, b, b, a]);
    },
  );

  test("keeps the side columns of each run in that run's store, or asks for none", async () => {
    const player = createForeignPlayer({
      async run({ baseUrl, apiKey, fetch, firstUserText }) {
        const messages = [{ role: "user", content: firstUserText }];
        const reply = await fetch(`${baseUrl}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "policy", messages }),
        });
        expect(reply.status).toBe(200);
        await reply.text();
      },
    });
    const renderer = createCharacterRenderer();
    const replies = Array.from({ length: 4 }, () => ({ outputIds: [72, 105] }));
    const engine = withInventedColumns(preparedEngine(replies));
    const task = storefront.task("test", 0);
    const playOne = async (columns?: ColumnSpecs, columnStore?: ColumnStore) =>
      await player.play(
        { task, rolloutId: "a#0", groupId: "a", sampleIndex: 0, seed: 0 },
        {
          environment: storefront,
          user: createStorefrontUser(),
          engine,
          now,
          limits: defaultLimits,
          renderer,
          sampling: {},
          agent,
          ...(columns && { columns }),
          ...(columnStore && { columnStore }),
        },
        { signal: new AbortController().signal },
      );
    const now = (): number => 0;
    const agent = createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      vocabulary: [],
      toolUsePolicy: toolUsePolicies.many,
    });
    const kept: string[][] = [];
    const storeOf = (name: string): ColumnStore => ({
      keep: async (columns) => {
        kept.push([name, ...Object.keys(columns)]);
        return await memoryColumns.keep(columns);
      },
    });
    const rowOf = ({ segments }: Episode): string[] => Object.keys(segments[0]!.columns ?? {});
    const topLogprobs = { count: 2 };
    const keptTokens = { maxCount: 2 };
    try {
      expect(rowOf(await playOne({ topLogprobs }, storeOf("first")))).toEqual(["topLogprobs"]);
      expect(rowOf(await playOne({ topLogprobs }, storeOf("second")))).toEqual(["topLogprobs"]);
      expect(rowOf(await playOne({ keptTokens }, storeOf("third")))).toEqual(["keptTokens"]);
      expect(rowOf(await playOne())).toEqual([]);
    } finally {
      await player.close();
    }
    expect(kept).toEqual([
      ["first", "topLogprobs"],
      ["second", "topLogprobs"],
      ["third", "keptTokens"],
    ]);
  });

  test("an agent that throws has failed itself, and has no reward", async () => {
    await using open = await openStorefrontSession(0);
    const episode = await play(open, {
      run: async () => {
        throw new Error("a bug of the agent's");
      },
    });
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: { party: "agent", code: "agent/exception" },
    });
    expect(episode).not.toHaveProperty("reward");
  });

  test.each<[what: string, hasFailed: boolean]>([
    ["ends", false],
    ["throws", true],
  ])("an agent that %s before its tool has answered is notified of the end", async (_, fails) => {
    await using open = await openStorefrontSession(0);
    const stepping: Environment = {
      ...shop,
      open: async (...call) => Object.assign(await shop.open(...call), { step: never }),
    };
    let answer: Promise<string> | undefined;
    const hasty = mirrored(open, {
      async run(run) {
        const silent = { ...run, tools: [], say: async () => undefined };
        await shopAgent.run(silent).catch(() => {});
        answer = run.tools[0]!.execute({});
        // It is running at this point.
        await new Promise((resolve) => setImmediate(resolve));
        if (fails) throw new Error("a bug of the agent's");
      },
    });
    const episode = await play(open, hasty, { environment: stepping });
    expect(episode.failure?.code).toBe(fails ? "agent/exception" : undefined);
    expect(await answer).toBe("Error: the conversation is over");
  });

  test("an agent sees no key in any message", async () => {
    await using open = await openStorefrontSession(0);
    const key = "sk-4711-hidden";
    const leaking: Environment = {
      ...shop,
      policyText: `Use ${key}.`,
      open: async (...call) =>
        Object.assign(await shop.open(...call), {
          tools: [toolFromOpenAi(toPyValue({ function: { name: "look", description: key } }), "t")],
          begin: async () => `I have ${key}.`,
          step: async (action: Action): Promise<Step> => {
            if (action.type === "say") return { observation: key, from: "user", source: "user" };
            throw new Error(`401: ${key} is no key`);
          },
          score: async () => ({ reward: 1, details: { key } }),
        }),
    };
    const seen: unknown[] = [];
    const curious: ForeignAgent = {
      async run({ policyText, firstUserText, tools, say }) {
        seen.push(policyText, firstUserText, tools[0]!.description, await say("?"));
        await tools[0]!.execute({}).catch((error: unknown) => seen.push(describeStack(error)));
      },
    };
    const redactor = new Redactor([key]);
    const { failure } = await play(open, curious, { environment: leaking }, { redactor });
    expect(seen.slice(0, 4)).toEqual([
      "Use [redacted].",
      "I have [redacted].",
      "[redacted]",
      "[redacted]",
    ]);
    expect(JSON.stringify([seen, failure])).not.toContain(key);
    expect(failure?.message).toContain("401: [redacted] is no key");
  });

  test("tokens still being sampled when the agent ends are aborted before the grader runs", async () => {
    await using open = await openStorefrontSession(0);
    const asked: string[] = [];
    let isLate = false;
    let release = (): void => {};
    const talking = createExpertEngine(await storefrontRenderer(), () => "One moment.");
    const engine: Engine = {
      ...talking,
      async generate(request, options = {}) {
        if (isLate) {
          asked.push("turn");
          await new Promise<void>((resolve) => (release = resolve));
        }
        return await talking.generate(request, options);
      },
    };
    const environment: Environment = {
      ...shop,
      async open(...how) {
        const world = await shop.open(...how);
        return {
          begin: async (options) => await world.begin(options),
          step: async (action, options) => await world.step(action, options),
          async score(options) {
            asked.push("score");
            release();
            // If a waiting caller is to get the turn, it has it at this point.
            await late;
            return await world.score(options);
          },
          userUsage: () => world.userUsage(),
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
        };
      },
    };
    let late: Promise<string> | undefined;
    const episode = await play(
      open,
      {
        async run({ baseUrl, apiKey, fetch, firstUserText }) {
          const openai = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, fetch, maxRetries: 0 });
          const messages = [{ role: "user" as const, content: firstUserText }];
          const ask = async () =>
            await openai.chat.completions.create({ model: "policy", messages });
          await ask();
          isLate = true;
          late = ask().then(
            () => "answered",
            () => "refused",
          );
          while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
        },
      },
      { engine, environment },
    );
    expect(asked).toEqual(["turn", "score"]);
    expect(await late).toBe("refused");
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "finished" });
    expect(episode.tree).toHaveLength(1);
    expect(episodeSamples(episode).flatMap(({ turns }) => turns)).toHaveLength(1);
  });

  test("a silent agent is ended with the episode's time", async () => {
    await using open = await openStorefrontSession(0);
    const hand = createManualClock();
    const limits = { ...defaultLimits, episodeTimeoutMs: 5000 };
    const silent: ForeignAgent = { run: async () => await new Promise(() => {}) };
    const playing = play(open, silent, { limits, clock: createClock(hand) });
    await hand.untilSleeping(5000);
    await hand.advance(5000);
    expect(await playing).toMatchObject({ outcome: "failed", failure: { code: "agent/timeout" } });
  });

  test.each<[code: string, suspect: string, limits: object, parts: Partial<World>]>([
    ["environment/timeout", "open", { toolTimeoutMs: 5 }, {}],
    ["grader/timeout", "score", { scoreTimeoutMs: 5 }, { score: never }],
  ])("names the function that never answers: %s", async (code, suspect, more, parts) => {
    await using open = await openStorefrontSession(0);
    const environment: Environment = {
      ...shop,
      open:
        suspect === "open"
          ? never
          : async (...call) => Object.assign(await shop.open(...call), parts),
    };
    const limits = { ...defaultLimits, ...more };
    const { failure } = await play(open, mirrored(open, shopAgent), { environment, limits });
    expect(failure).toEqual({
      party: code.split("/")[0],
      code,
      message:
        `Cannot ${suspect} task storefront/test/0: no answer within 5 ms, expected one (a forgotten ` +
        `resolve in ${suspect}() of storefront?)`,
    });
  });

  test.each([
    ["open", "first line of"],
    ["score", "reply in"],
  ] as const)("names the user who never answers what %s() asks", async (asker, what) => {
    await using open = await openStorefrontSession(0);
    const limits = { ...defaultLimits, userTimeoutMs: 5 };
    const user: ReturnType<typeof createStorefrontUser> = {
      strategy: "hung",
      open: (task, options) => {
        const session = createStorefrontUser().open(task, options);
        return {
          begin: async (call) => (asker === "open" ? await never() : await session.begin(call)),
          reply: async (text, call) =>
            text === "How was it?" ? await never() : await session.reply(text, call),
          usage: () => session.usage(),
        };
      },
    };
    const environment: Environment = {
      ...shop,
      open: async (task, options) => {
        if (asker === "open") await options.user.begin({ signal: options.signal });
        const score: World["score"] = async (call) => {
          await options.user.reply("How was it?", call);
          return { reward: 1, details: {} };
        };
        return Object.assign(await shop.open(task, options), { score });
      },
    };
    const { failure } = await play(open, mirrored(open, shopAgent), { environment, user, limits });
    expect(failure).toEqual({
      party: "user",
      code: "user/timeout",
      message: `Cannot hear the user's ${what} task storefront/test/0: no answer within 5 ms`,
    });
  });

  describe("a tool that asks the user", () => {
    /** Its user takes so long for an answer, and it so long for its own. */
    function asking(open: StorefrontSession, { userMs, toolMs }: Readonly<Record<string, number>>) {
      const hand = createManualClock();
      const user: ReturnType<typeof createStorefrontUser> = {
        strategy: "slow",
        open: (task, options) => {
          const session = createStorefrontUser().open(task, options);
          return {
            begin: async (call) => await session.begin(call),
            reply: async (text, call) => {
              if (text !== "Sure?") return await session.reply(text, call);
              await hand.sleep(userMs!);
              return "Yes.";
            },
            usage: () => session.usage(),
          };
        },
      };
      let hasAsked = false;
      const environment: Environment = {
        ...shop,
        async open(task, options) {
          const world = await shop.open(task, options);
          const perform = world.step.bind(world);
          const step: World["step"] = async (action, { signal }) => {
            if (action.type === "call" && !hasAsked) {
              hasAsked = true;
              await options.user.reply("Sure?", { signal });
              await hand.sleep(toolMs!);
            }
            return await perform(action, { signal });
          };
          return Object.assign(world, { step });
        },
      };
      const limits = { ...defaultLimits, toolTimeoutMs: 200, userTimeoutMs: 2000 };
      const around = { environment, user, limits, clock: createClock(hand) };
      return { hand, playing: play(open, mirrored(open, shopAgent), around) };
    }

    test("has its own time limit, and so has the user", async () => {
      await using open = await openStorefrontSession(0);
      const { hand, playing } = asking(open, { userMs: 401, toolMs: 101 });
      await hand.untilSleeping(401);
      await hand.advance(401);
      await hand.untilSleeping(101);
      await hand.advance(101);
      expect(await playing).toMatchObject({ outcome: "completed", reward: 1 });
    });

    test("is not to blame for a user that runs out of time", async () => {
      await using open = await openStorefrontSession(0);
      const { hand, playing } = asking(open, { userMs: 3001, toolMs: 101 });
      await hand.untilSleeping(3001);
      await hand.advance(2000);
      expect((await playing).failure).toMatchObject({
        code: "user/timeout",
        message: expect.stringContaining("no answer within 2000 ms") as string,
      });
    });

    test("is to blame if its own time is over", async () => {
      await using open = await openStorefrontSession(0);
      const { hand, playing } = asking(open, { userMs: 401, toolMs: 301 });
      await hand.untilSleeping(401);
      await hand.advance(401);
      await hand.untilSleeping(301);
      await hand.advance(200);
      expect((await playing).failure).toMatchObject({
        code: "environment/timeout",
        message: expect.stringContaining("no answer within 200 ms") as string,
      });
    });
  });

  test("is scored with the grader's own signal if the agent continues after a limit", async () => {
    await using open = await openStorefrontSession(0);
    const hand = createManualClock();
    const limits = { ...defaultLimits, maxTurns: 1, episodeTimeoutMs: 5000 };
    const heeding: Environment = {
      ...shop,
      async open(...call) {
        const world = await shop.open(...call);
        const score = world.score.bind(world);
        return Object.assign(world, {
          score: async (options: { readonly signal: AbortSignal }) => {
            options.signal.throwIfAborted();
            return await score(options);
          },
        });
      },
    };
    const insisting = mirrored(open, {
      async run(run) {
        await shopAgent.run(run).catch(() => {});
        void hand.advance(5000);
        await new Promise(() => {});
      },
    });
    const around = { environment: heeding, limits, clock: createClock(hand) };
    expect(await play(open, insisting, around)).toMatchObject({
      outcome: "truncated",
      stopReason: "max-turns",
      reward: 0,
    });
  });

  test("an agent that returns no text has failed, and the world is not asked", async () => {
    await using open = await openStorefrontSession(0);
    const { failure } = await play(open, {
      run: async ({ say }) => void (await say({ content: "Hello" } as never)),
    });
    expect(failure).toMatchObject({
      code: "agent/exception",
      message: expect.stringMatching(
        /: Cannot say an object with content: expected text$/,
      ) as string,
    });
  });

  test.each<[what: string, generate: Engine["generate"], message: string]>([
    ["throws plainly", () => Promise.reject(new TypeError("fetch failed")), "fetch failed"],
    [
      "throws our kind of bug",
      () => {
        throw new InvariantError("a socket is open or closed");
      },
      "a socket is open or closed",
    ],
  ])("an engine that %s has failed one attempt", async (_, generate, message) => {
    await using open = await openStorefrontSession(0);
    const engine = { ...open.engine, generate };
    const { failure } = await play(open, mirrored(open, shopAgent), { engine });
    expect(failure).toMatchObject({
      code: "engine/exception",
      message: expect.stringMatching(new RegExp(`^Cannot sample .*: ${message}$`)) as string,
    });
  });

  test.each<[what: string, wait: (signal: AbortSignal) => Promise<never>]>([
    ["ignores its signal", never],
    [
      "gives up as its signal says",
      async (signal) =>
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    ],
    [
      "gives up in its own way",
      async (signal) =>
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(new TypeError("socket closed")));
        }),
    ],
  ])("an engine that is too slow and %s has failed one attempt", async (_, wait) => {
    await using open = await openStorefrontSession(0);
    const hand = createManualClock();
    const limits = { ...defaultLimits, engineTimeoutMs: 700 };
    const generate: Engine["generate"] = async (_request, options) => {
      void hand.advance(700);
      return await wait(options!.signal!);
    };
    const around = { engine: { ...open.engine, generate }, limits, clock: createClock(hand) };
    const { failure } = await play(open, mirrored(open, shopAgent), around);
    expect(failure).toEqual({
      party: "engine",
      code: "engine/timeout",
      message: expect.stringMatching(/^Cannot sample turn .*: no answer within 700 ms$/),
    });
  });

  test("an agent loses no time while the policy is held by its owner", async () => {
    await using open = await openStorefrontSession(0);
    const manual = createManualClock();
    const limits = { ...defaultLimits, episodeTimeoutMs: 60_000, engineTimeoutMs: 60_000 };
    const gate = new PolicyGate(open.engine);
    await gate.close("hold");
    let heldCount = 0;
    const engine: Engine = {
      ...gate.engine,
      generate: async (request, options) =>
        await gate.engine.generate(request, {
          ...options,
          onHeld(isHeld) {
            options?.onHeld?.(isHeld);
            if (!isHeld) return;
            heldCount += 1;
            // Once the agent waits, an hour goes by until its policy may be asked.
            void (async () => {
              await manual.advance(3_600_000);
              gate.open();
            })();
          },
        }),
    };
    const around = { engine, limits, clock: createClock(manual) };
    const episode = await play(open, mirrored(open, shopAgent), around);
    expect(heldCount).toBe(1);
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 1 });
  });

  test("a program that fails says how, without its key", async () => {
    await using open = await openStorefrontSession(0);
    const command =
      'node -e "console.error(process.env.OPENAI_API_KEY + process.env.OPENAI_BASE_URL); process.exit(3)"';
    const { failure } = await play(open, createCommandAgent(command));
    expect(failure?.code).toBe("agent/exit");
    expect(failure?.message).toMatch(/ended with status 3: …http:\/\/127\.0\.0\.1:\d+\/v1$/);
  });
});
