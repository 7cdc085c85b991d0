import { describe, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { UsageError } from "../errors.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { Action } from "./environment.ts";
import { playActions, replayCalls } from "./play-actions.ts";

const { signal } = new AbortController();
const storefront = createStorefront();
const say: Action = { type: "say", content: "Hm?" };

/** The first test task that one write fulfils, and that write. */
function firstWrite() {
  for (let index = 0; ; index++) {
    const task = storefront.task("test", index);
    const [goal] = task.data.goals;
    if (task.data.goals.length !== 1 || goal?.end.type !== "done") continue;
    const { name, arguments: given } = goal.end.call;
    return {
      task,
      call: { type: "call", name, arguments: new Map(Object.entries(given)) },
    } as const;
  }
}

describe("playActions()", () => {
  test("gives the opening, a step for each action, and the score", async () => {
    const { task, call } = firstWrite();
    const user = createScriptedUser({ lines: ["Hello.", { text: "Bye.", leaves: true }] });
    const played = await playActions(storefront, { task, user, actions: [call, say] }, { signal });
    expect(played.opening).toBe("Hello.");
    expect(played.steps.map(({ source, done }) => [source, done])).toEqual([
      [call.name, undefined],
      ["user", "user-left"],
    ]);
    expect(played.score.reward).toBe(1);
  });

  test("refuses actions after the end", async () => {
    const task = storefront.task("test", 0);
    const user = createScriptedUser({ lines: ["Hello.", { text: "Bye.", leaves: true }] });
    const play = playActions(storefront, { task, user, actions: [say, say] }, { signal });
    await expect(play).rejects.toThrow(
      new UsageError(
        "Cannot play actions[1]: the episode was done after actions[0], expected no action to follow",
      ),
    );
  });
});

describe("replayCalls()", () => {
  test("gives the state's hash after each call, the same for the same state", async () => {
    const { task, call } = firstWrite();
    const order = call.arguments.get("order") ?? "";
    const look = {
      type: "call",
      name: "get_order",
      arguments: new Map([["order", order]]),
    } as const;
    const { observations, stateHashes } = await replayCalls(
      storefront,
      { task, calls: [look, call, look] },
      { signal },
    );
    expect(observations).toHaveLength(3);
    expect(stateHashes?.[1]).not.toBe(stateHashes?.[0]);
    expect(stateHashes?.[2]).toBe(stateHashes?.[1]);
  });

  test("refuses calls after one that ended the episode", async () => {
    const { task, call } = firstWrite();
    const ending = {
      ...storefront,
      open: async (...given: Parameters<typeof storefront.open>) => {
        const world = await storefront.open(...given);
        const step: typeof world.step = async (action, options) => ({
          ...(await world.step(action, options)),
          done: "terminal-tool",
        });
        return { ...world, step };
      },
    };
    const replay = replayCalls(ending, { task, calls: [call, call] }, { signal });
    await expect(replay).rejects.toThrow(
      "Cannot make calls[1]: the episode was done after calls[0]",
    );
  });
});
