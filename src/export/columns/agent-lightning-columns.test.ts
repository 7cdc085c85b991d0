import { expect, test } from "vitest";
import { createColumnPart } from "../../columns/column-part.ts";
import { toSamples } from "../../trajectory/sample.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import { requireAgentLightningColumns, spellNpyRoutes } from "./agent-lightning-columns.ts";
import { RowColumns } from "./row-columns.ts";

/** Returns a row of three ids, with two rows of routes: 1 to 4. */
function rowOf(expertCount: number): RowColumns {
  const recorder = new TrajectoryRecorder();
  recorder.openSegment([1, 2]);
  recorder.appendTurn({
    outputIds: [3],
    logprobs: [-1],
    finish: { type: "stop", matched: 3 },
    pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "0", finish: "stop" }],
    discarded: [],
  });
  const [plain] = toSamples(
    recorder.toSegments(),
    { rolloutId: "lamps/0#0", groupId: "lamps/0", taskId: "lamps/0" },
    { outcome: "completed", stopReason: "user-left", reward: 1 },
  );
  const bytes = Uint8Array.of(1, 2, 3, 4);
  const part = createColumnPart({ from: 0, rows: 2, policyVersion: "0", bytes });
  const sample = { ...plain!, columns: { routedExperts: [part] } };
  return new RowColumns(
    { ...sample, sample },
    {
      specs: { routedExperts: { layerCount: 1, perToken: 2, expertCount } },
      source: {
        read: async (_, { start, end } = { start: 0, end: 4 }) =>
          await Promise.resolve(bytes.slice(start, end)),
      },
    },
  );
}

test("agent-lightning gets a .npy file with a row for each id but the last", async () => {
  const file = Buffer.from(await spellNpyRoutes(rowOf(256), 3), "base64");
  expect(file.subarray(0, 10).toString("latin1")).toBe("\x93NUMPY\x01\x00\x76\x00");
  const head = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 2), }";
  expect(file.subarray(10, 128).toString("latin1")).toBe(`${head.padEnd(117)}\n`);
  expect([...file.subarray(128)]).toEqual([1, 2, 3, 4]);
});

test("above 256 experts, and with kept tokens, the run is refused", () => {
  const experts = (expertCount: number) => ({
    routedExperts: { layerCount: 1, perToken: 2, expertCount },
  });
  expect(() => requireAgentLightningColumns(experts(256))).not.toThrow();
  expect(() => requireAgentLightningColumns(experts(257))).toThrow(
    "Cannot hand this run to agent-lightning: its layers have 257 experts, and agent-lightning cuts their ids to bytes",
  );
  expect(() => requireAgentLightningColumns({ keptTokens: { maxCount: 4 } })).toThrow(
    "Cannot hand this run to agent-lightning: it has keptTokens, and agent-lightning has no field for the sets, and the " +
      "run's logprobs are those over the sets; use a trainer that takes them (slime, skyrl, verifiers)",
  );
});
