import { expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { createClock } from "../../async/clock.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { ServedEpisode } from "./served-episode.ts";

test("a dispose() that hangs delays a session's end no longer than a call, and frees the opened parts", async () => {
  const hand = createManualClock();
  const log: string[] = [];
  const environment = defineEnvironment({
    name: "lamps",
    tasks: [{ instruction: "Light, please." }],
    policy: "You look after the lamps.",
    initialState: async (_, { resource }) => {
      await resource({}, async () => ({
        [Symbol.asyncDispose]: async () => void log.push("freed"),
      }));
      return {};
    },
    tools: [],
    score: () => 0,
    dispose: async () => await new Promise<never>(() => {}),
  });
  const over = new AbortController();
  const episode = new ServedEpisode({
    environment,
    user: environment.user,
    timeoutMs: 777,
    clock: createClock(hand),
    signal: over.signal,
  });
  await episode.reset({});
  over.abort();
  const ended = episode[Symbol.asyncDispose]();
  ended.catch(() => {});
  await hand.untilSleeping(777);
  await hand.advance(776);
  expect(log).toEqual([]);
  await hand.advance(1);
  await expect(ended).rejects.toThrow(
    "Cannot dispose of the world of task lamps/test/0: no answer within 777 ms",
  );
  expect(log).toEqual(["freed"]);
});
