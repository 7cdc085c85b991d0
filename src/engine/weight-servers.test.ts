import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { loadOnAll, type Weights, type WeightServer } from "./weight-servers.ts";

const step7 = { path: "/step-7", version: "7" };
const step8 = { path: "/step-8", version: "8" };

/** A server that refuses what `refuses` names; `halfway` loses then what it had. */
function server(
  url: string,
  { refuses = [], halfway = false }: { refuses?: readonly string[]; halfway?: boolean } = {},
) {
  let has: Weights = step7;
  const asked: string[] = [];
  const own: WeightServer & { readonly asked: string[]; has: () => Weights } = {
    url,
    asked,
    has: () => has,
    current: () => Promise.resolve(has),
    async load(weights) {
      asked.push(weights.version);
      if (!refuses.includes(weights.version)) has = weights;
      else {
        if (halfway) has = { path: "", version: "loading" };
        throw new RolloutError("engine/server-error", `${url} cannot load ${weights.path}`);
      }
    },
  };
  return own;
}

describe("loadOnAll()", () => {
  test("gives back what they had to those that loaded, and to those that lost it", async () => {
    const [one, keeps, loses] = [
      server("one"),
      server("keeps", { refuses: ["8"] }),
      server("loses", { refuses: ["8"], halfway: true }),
    ];
    await expect(loadOnAll([one, keeps, loses], step8)).rejects.toMatchObject({
      ...{ code: "engine/server-error", message: "keeps cannot load /step-8" },
    });
    expect([one, keeps, loses].map((each) => each.has())).toEqual([step7, step7, step7]);
    expect([one.asked, keeps.asked, loses.asked]).toEqual([["8", "7"], ["8"], ["8", "7"]]);
  });

  test("says so where one cannot be given back what it had", async () => {
    const lost = server("lost", { refuses: ["8", "7"], halfway: true });
    await expect(loadOnAll([server("one"), lost], step8)).rejects.toMatchObject({
      code: "engine/mixed-weights",
      message:
        "lost cannot load /step-8; and lost could not be given back what it had (lost cannot load /step-7)",
    });
  });
});
