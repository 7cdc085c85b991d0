import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { verifyRun } from "../../verify/verify-run.ts";
import type { Engine, Generation, GenerationPiece } from "../../engine/engine.ts";
import { preparedEngine, says } from "../../episode/lamp-episode.fixture.ts";
import { fiftyLamps, openLamps, startLamps } from "../lamp-groups.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import { markVersions } from "./mark-versions.ts";

const request = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 9,
  stopTokenIds: [2],
  requestId: "r",
  sessionId: "s",
};

function pieceOf(policyVersion: string): GenerationPiece {
  return { requestId: "r", tokenCount: 1, policyVersion, finish: "stop" };
}

test.each([
  [false, ["7", "7", "3", "0", "7", "7"]],
  [true, ["7", "7", "7", "7", "7", "7"]],
])("names the announced version if the engine names no integer; overrules: %s", async (...row) => {
  const [overrules, expected] = row;
  const pieces = ["", "default", "3", "0", "0x10", "v3"].map((name) => pieceOf(name));
  const inner = preparedEngine([{ outputIds: [5, 5, 5, 5, 5, 2], pieces }]);
  const engine = markVersions(inner, () => ({ version: 7, overrules }));
  const generation = await engine.generate(request);
  expect(generation.pieces).toEqual(expected.map((name) => pieceOf(name)));
  expect(pieces.map(({ policyVersion }) => policyVersion)).toEqual([
    "",
    "default",
    "3",
    "0",
    "0x10",
    "v3",
  ]);
});

test.each([undefined, null, 7, {}, { pieces: "none" }, { pieces: [null, { policyVersion: 3 }] }])(
  "passes on anything but a generation to the caller: %j",
  async (given) => {
    const inner: Engine = {
      ...preparedEngine([]),
      generate: async () => given as unknown as Generation,
    };
    const engine = markVersions(inner, () => ({ version: 7, overrules: true }));
    expect(await engine.generate(request)).toEqual(given);
  },
);

test("a run with a first version that is announced after its first group verifies", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-first-version-"));
  try {
    {
      await using folder = await openLamps(dir);
      const silent = preparedEngine([]);
      const engine: Engine = {
        ...silent,
        async generate(asked, options) {
          const { outputIds } = says("Goodbye!");
          const pieces = [{ ...pieceOf(""), tokenCount: outputIds!.length }];
          return await preparedEngine([{ outputIds: outputIds!, pieces }]).generate(asked, options);
        },
      };
      const setup = lampSetup({ environment: fiftyLamps, engine });
      const run = startLamps({ folder, setup, admission: { concurrency: 1, ahead: 1 } });
      let version = 0;
      for await (const _ of run) await run.updatePolicy(++version, async () => {});
    }
    const { violations } = await verifyRun(dir);
    expect(violations.filter(({ rule }) => rule === "policy-versions")).toEqual([]);
  } finally {
    await rm(dir, { recursive: true });
  }
});
