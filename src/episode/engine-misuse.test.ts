import { describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import type { Engine, GenerateRequest } from "../engine/engine.ts";
import { createSglangEngine } from "../engine/sglang/sglang-engine.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError, isOwnBug } from "../errors.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import { askEngine } from "./turn/ask-engine.ts";
import type { EpisodeSetup } from "./episode-setup.ts";
import { lamp, lampTask, play, preparedEngine, says, switchCall } from "./lamp-episode.fixture.ts";
import { defaultLimits } from "./limits.ts";
import type { Play } from "./play.ts";
import { playForeign } from "./play-foreign.ts";

const url = "http://127.0.0.1:9";
const request: GenerateRequest = {
  promptIds: [1, 2],
  sampling: {},
  maxNewTokens: 1,
  stopTokenIds: [],
  requestId: "judge;",
  sessionId: "judge",
};
const goodTurns = [says(switchCall), says("Goodbye!")];
const noRoom = "Cannot sample: maxNewTokens is 0, expected a number of at least 1";
const closed = `Cannot call engine sglang at ${url}: it was closed, expected no call after close()`;

async function closedJudge(): Promise<ReturnType<typeof createSglangEngine>> {
  const judge = createSglangEngine({ url });
  await judge.close();
  return judge;
}

/** The lamp with a grader that asks a judge. */
function judged(ask: () => Promise<unknown>): Environment {
  return {
    ...lamp(),
    async open(task, options) {
      const world = await lamp().open(task, options);
      world.score = async () => {
        await ask();
        return { reward: 1, details: {} };
      };
      return world;
    },
  };
}

describe("an engine of this package that other code calls with an invalid request", () => {
  test.each<[what: string, ask: () => Promise<unknown>, message: string]>([
    [
      "a judge is asked for no token at all",
      async () => await createSglangEngine({ url }).generate({ ...request, maxNewTokens: 0 }),
      noRoom,
    ],
    [
      "a judge is asked with an id that it does not have",
      async () => await createSglangEngine({ url }).generate({ ...request, vocabularySize: 2 }),
      "Cannot sample: promptIds[1] is 2, expected an id, 0 to 1",
    ],
    ["a closed judge samples", async () => await (await closedJudge()).generate(request), closed],
    [
      "a closed judge scores",
      async () => await (await closedJudge()).score({ ids: [1, 2], sampling: {} }),
      closed,
    ],
    ["a closed judge is asked what it is", async () => (await closedJudge()).describe(), closed],
    ["a closed judge is asked how busy it is", async () => (await closedJudge()).load(), closed],
  ])("is the failure of the party that misuses it: %s", async (_, ask, message) => {
    const { episode } = await play(goodTurns, { environment: judged(ask) });
    expect(episode.failure).toEqual({
      party: "grader",
      code: "grader/exception",
      message: `Cannot score task lamp/test/0: ${message}`,
    });
  });

  test("is the failure of a custom engine around it", async () => {
    const inner = createSglangEngine({ url });
    const engine: Engine = {
      ...inner,
      kind: "budgeted",
      generate: async (asked, options) =>
        await inner.generate({ ...asked, maxNewTokens: 0 }, options),
    };
    const { episode } = await play([], { engine });
    expect(episode.failure).toEqual({
      party: "engine",
      code: "engine/exception",
      message: `Cannot sample turn lamp/test/0#0:1:0;: ${noRoom}`,
    });
  });

  test("is the failure of a custom player", async () => {
    const setup: EpisodeSetup = {
      environment: lamp(),
      engine: createSglangEngine({ url }),
      user: createScriptedUser({ lines: ["Lamp on, please."] }),
      renderer: createCharacterRenderer(),
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: defaultLimits,
      now: () => 1000,
    };
    const options = { signal: new AbortController().signal };
    const assignment = {
      task: lampTask,
      rolloutId: "lamp/test/0#0",
      groupId: "lamp/test/0",
      sampleIndex: 0,
      seed: 0,
    };
    const episode = await playForeign(
      async (_assignment, { engine }) =>
        (await engine.generate({ ...request, maxNewTokens: 0 })) as never,
      assignment,
      setup,
      options,
    );
    expect(episode.failure).toEqual({
      party: "agent",
      code: "agent/exception",
      message: `Cannot play lamp/test/0#0 as agent tool-calling: ${noRoom}`,
    });
  });
});

describe("a reply with getters that return other values on a later read", () => {
  function fickleEngine(nth: number, then: () => unknown): Engine {
    const engine = preparedEngine(goodTurns);
    return {
      ...engine,
      async generate(asked, options) {
        let left = nth;
        const reply = await engine.generate(asked, options);
        // eslint-disable-next-line unicorn/no-thenable
        return Object.defineProperty(reply, "then", {
          get: () => (--left === 0 ? then() : undefined),
        });
      },
    };
  }

  function fail(): never {
    throw new Error("not today");
  }

  test("fails only the episode, and within the engine's time limit", async () => {
    const { episode: thrown } = await play([], { engine: fickleEngine(1, fail) });
    expect(thrown.failure).toMatchObject({ party: "engine", code: "engine/exception" });
    const engine = fickleEngine(1, () => () => {});
    const limits = { ...defaultLimits, engineTimeoutMs: 50 };
    const { episode: hung } = await play([], { engine, limits });
    expect(hung.failure).toMatchObject({ party: "engine", code: "engine/timeout" });
  });

  test.each([2, 3, 4, 5, 6, 7, 8])("is not asked the %ith time", async (nth) => {
    for (const then of [fail, () => () => {}]) {
      const { episode } = await play([], { engine: fickleEngine(nth, then) });
      expect(episode.outcome).toBe("completed");
    }
  });
});

test("an invalid request by an episode is a bug of this package, with any engine", async () => {
  const sound = { recorder: new TrajectoryRecorder() } as Play;
  const asked = askEngine(sound, { ...request, maxNewTokens: 0 });
  await expect(asked).rejects.toSatisfy(isOwnBug);
  await expect(asked).rejects.toThrow(noRoom);
  const refused = createSglangEngine({ url }).generate({ ...request, maxNewTokens: 0 });
  await expect(refused).rejects.toThrow(UsageError);
});
