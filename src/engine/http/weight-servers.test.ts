import { describe, expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import { loadOnAll, type Weights, type WeightServer } from "./weight-servers.ts";

const step7 = { path: "/step-7", version: "7" };
const step8 = { path: "/step-8", version: "8" };

/** A server that refuses the calls in `refuses`. `halfway` loses its previous weights then. */
function server(
  url: string,
  { refuses = [], halfway = false }: { refuses?: readonly string[]; halfway?: boolean } = {},
) {
  let has: Weights = step7;
  const calls: string[] = [];
  const own: WeightServer & { readonly calls: string[]; has: () => Weights } = {
    url,
    calls,
    has: () => has,
    current: () => Promise.resolve(has),
    pause: async () => void calls.push("pause"),
    resume: async () => void calls.push("resume"),
    async restore(weights) {
      calls.push(`restore ${weights.version}`);
      await take(weights);
    },
    async load(weights) {
      calls.push(`load ${weights.version}`);
      await take(weights);
    },
  };
  return own;
  async function take(weights: Weights): Promise<void> {
    if (!refuses.includes(weights.version)) has = weights;
    else {
      if (halfway) has = { path: "", version: "loading" };
      throw new RolloutError("engine/server-error", `${url} cannot load ${weights.path}`);
    }
  }
}

describe("loadOnAll()", () => {
  test("restores all servers if one refuses, including that one, which may have loaded a part", async () => {
    const [one, keeps, loses] = [
      server("one"),
      server("keeps", { refuses: ["8"] }),
      server("loses", { refuses: ["8"], halfway: true }),
    ];
    await expect(loadOnAll([one, keeps, loses], step8)).rejects.toMatchObject({
      code: "engine/server-error",
      message: "keeps cannot load /step-8",
    });
    expect([one, keeps, loses].map((each) => each.has())).toEqual([step7, step7, step7]);
    for (const { calls } of [one, keeps, loses]) {
      expect(calls).toEqual(["pause", "load 8", "pause", "restore 7", "resume"]);
    }
  });

  test("lets each server sample again after all have loaded", async () => {
    const [one, two] = [server("one"), server("two")];
    await loadOnAll([one, two], step8);
    for (const { calls, has } of [one, two]) {
      expect([calls, has()]).toEqual([["pause", "load 8", "resume"], step8]);
    }
  });

  test("reports a server that cannot be restored, and lets none sample", async () => {
    const [one, lost] = [server("one"), server("lost", { refuses: ["8", "7"], halfway: true })];
    await expect(loadOnAll([one, lost], step8)).rejects.toMatchObject({
      code: "engine/mixed-weights",
      message:
        "lost cannot load /step-8; and lost could not load its previous weights again (lost cannot load /step-7)",
    });
    expect([...one.calls, ...lost.calls]).not.toContain("resume");
  });

  test("restores nothing from the folder that was to be loaded, because its contents have changed", async () => {
    const one = server("one", { refuses: ["8"] });
    const inPlace = { path: step7.path, version: "8" };
    await expect(loadOnAll([one], inPlace)).rejects.toMatchObject({
      code: "engine/mixed-weights",
      message: expect.stringContaining("it was loaded from /step-7 as well") as string,
    });
    expect(one.calls).toEqual(["pause", "load 8"]);
  });
});
