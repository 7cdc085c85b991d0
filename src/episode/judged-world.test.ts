import { expect, test } from "vitest";
import { systemClock } from "../async/clock.ts";
import { defineEnvironment } from "../environment/define-environment.ts";
import type { Action, Environment } from "../environment/environment.ts";
import type { User } from "../user/user.ts";
import { JudgedWorld } from "./judged-world.ts";

const say: Action = { type: "say", content: "Hm?" };

const defined = defineEnvironment({
  name: "desk",
  tasks: [{ instruction: "Lend." }],
  policy: "",
  tools: { look: { description: "Look.", execute: () => "a desk" } },
  score: () => ({ turnRewards: [0.5, 0.5] }),
});
const desk = defined as Environment;
const ownUser: User = defined.user;

const noCost = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0, costUsd: 0 };

function answering(reply: unknown): User {
  const session = { begin: async () => "Hello.", reply: async () => reply, usage: () => noCost };
  return { ...ownUser, strategy: "own", open: () => session as never };
}

async function open(user: User, environment = desk): Promise<JudgedWorld> {
  const { signal } = new AbortController();
  const task = environment.task("test", 0);
  const terms = { environment, user, task, seed: 0, clock: systemClock, timeoutMs: 60_000, signal };
  return await JudgedWorld.open(terms);
}

test("plays what is in order, each action as a turn", async () => {
  await using world = await open(answering({ text: "Bye.", leaves: true }));
  expect(await world.begin()).toBe("Hello.");
  const look: Action = { type: "call", name: "look", arguments: new Map() };
  expect((await world.step(look)).observation).toBe("a desk");
  expect(await world.step(say)).toMatchObject({ observation: "Bye.", done: "user-left" });
  expect(await world.score()).toMatchObject({ reward: 1, turnRewards: [0.5, 0.5] });
});

test("refuses a line that a run refuses, as the user's failure", async () => {
  await using world = await open(answering({ text: "Bye." }));
  await world.begin();
  await expect(world.step(say)).rejects.toMatchObject({
    code: "user/bad-line",
    message: expect.stringContaining("expected a text, or {") as string,
  });
});

test("refuses a session, a step and a score that a run refuses", async () => {
  const broken = { ...ownUser, open: () => ({}) as never };
  await expect(open(broken)).rejects.toMatchObject({ code: "user/bad-session" });
  const odd = {
    ...desk,
    async open(...given: Parameters<Environment["open"]>) {
      const world = await desk.open(...given);
      return Object.assign(
        Object.create(world) as typeof world,
        {
          begin: async () => "Hello.",
          step: async () => ({ observation: 5 }),
          score: async () => ({ reward: 1, details: {}, turnRewards: [1] }),
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
        } as never,
      );
    },
  };
  await using world = await open(ownUser, odd);
  await expect(world.step(say)).rejects.toMatchObject({ code: "environment/bad-step" });
  await expect(world.step(say)).rejects.toMatchObject({ code: "environment/bad-step" });
  await expect(world.score()).rejects.toMatchObject({ code: "grader/bad-score" });
});
