import { readdir } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyRun } from "../verify/verify-run.ts";
import type { Engine } from "../engine/engine.ts";
import { createForeignPlayer, type ForeignPlayer } from "../gateway/agent/foreign-player.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import { lampEngine, longLampSetup, QueueBench } from "./queue.fixture.ts";
import { missingStore } from "./store/store-server.fixture.ts";

let player: ForeignPlayer;
beforeEach(() => {
  // Asks the policy for one turn, and passes its text to the user.
  player = createForeignPlayer({
    async run({ fetch, baseUrl, apiKey, policyText, firstUserText, say, signal }) {
      const reply = await fetch(`${baseUrl}/v1/chat/completions`, {
        method: "POST",
        signal,
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "policy",
          logit_bias: { 5: 1 },
          messages: [
            { role: "system", content: policyText },
            { role: "user", content: firstUserText },
          ],
        }),
      });
      const { choices } = (await reply.json()) as {
        readonly choices: readonly { readonly message: { readonly content: string } }[];
      };
      await say(choices[0]!.message.content);
    },
  });
});
afterEach(async () => {
  await player.close();
});

/** Lamps whose attempts need an external agent that no built-in agent can replace. */
function foreignSetup(engine?: Engine): StartRunOptions["setup"] {
  const refuse = (): never => {
    throw new Error("no call is expected");
  };
  const agent = { strategy: "foreign", open: refuse, read: refuse, observe: refuse };
  return { ...longLampSetup(engine), agent, play: player.play };
}

const goodbye = lampEngine(() => "Goodbye!");

describe.skipIf(missingStore !== undefined)("an external agent", () => {
  test("plays at workers as it plays here, and is not recorded", async () => {
    await using bench = await QueueBench.open();
    for (const name of ["here", "handed-out"]) {
      const setup = foreignSetup(goodbye);
      const place = await bench.place();
      if (name !== "here") await bench.worker({ setup, place });
      const handOut = name === "here" ? undefined : await bench.handOut({ place });
      const folder = await bench.folder(name);
      const run = bench.start(3, { setup, folder, ...(handOut && { player: handOut.player() }) });
      for await (const { episodes } of run) {
        expect(episodes.map(({ outcome, failure }) => [outcome, failure])).toEqual([
          ["completed", undefined],
          ["completed", undefined],
        ]);
      }
      expect(await run.result).toMatchObject({
        end: "finished",
        progress: {
          finished: 6,
          gateway: { turnCount: 6, roots: { first: 6 }, unenforced: { logit_bias: 6 } },
        },
      });
      await folder[Symbol.asyncDispose]();
      expect(await verifyRun(folder.dir)).toMatchObject({ episodes: 6, violations: [] });
    }
    expect(await bench.text("handed-out", "samples.jsonl")).toBe(
      await bench.text("here", "samples.jsonl"),
    );
    expect(await readdir(path.join(bench.dir, "shared"))).not.toContain("recordings");
  });

  test("abandons an interrupted attempt at a worker, and plays it again at the next start", async () => {
    await using bench = await QueueBench.open();
    const asked = withResolvers();
    const hung = lampEngine(async () => {
      asked.resolve();
      await new Promise(() => {});
    });
    const one = await bench.worker({ setup: foreignSetup(hung), concurrency: 1 });
    const handOut = await bench.handOut();
    const setup = foreignSetup(goodbye);
    const admission = { concurrency: 1 };
    const folder = await bench.folder("run");
    const first = bench.start(1, { setup, folder, player: handOut.player(), admission });
    await asked.promise;
    expect(await first.interrupt()).toMatchObject({ end: "interrupted" });
    await folder[Symbol.asyncDispose]();
    await one[Symbol.asyncDispose]();
    await bench.worker({ setup });
    const again = await bench.folder("run");
    const second = bench.start(1, { setup, folder: again, player: handOut.player(), admission });
    for await (const { episodes } of second) {
      expect(episodes.map(({ outcome }) => outcome)).toEqual(["completed", "completed"]);
    }
    expect(await second.result).toMatchObject({ end: "finished" });
  });

  test("samples nothing at a worker while the policy is held", async () => {
    await using bench = await QueueBench.open();
    const versions: string[] = [];
    const askedWhileHeld: boolean[] = [];
    let isHeld = false;
    const engine = lampEngine(() => {
      askedWhileHeld.push(isHeld);
      return "Goodbye!";
    });
    await bench.worker({ setup: foreignSetup(engine), concurrency: 1 });
    const handOut = await bench.handOut({ isMarked: true });
    const setup = foreignSetup(engine);
    const admission = { concurrency: 1, ahead: 1 };
    const run = bench.start(3, { setup, player: handOut.player(), admission });
    run.announcePolicy(1);
    for await (const { groupIndex, episodes } of run) {
      versions.push(...episodes.map(({ segments }) => segments[0]!.policyVersions.at(-1)!));
      if (groupIndex !== 0) continue;
      await run.updatePolicy(2, async () => {
        isHeld = true;
        await new Promise((resolve) => setImmediate(resolve));
        isHeld = false;
      });
    }
    expect(versions.slice(0, 2)).toEqual(["1", "1"]);
    expect(versions.at(-1)).toBe("2");
    expect(askedWhileHeld).toEqual(Array.from({ length: 6 }, () => false));
  });
});
