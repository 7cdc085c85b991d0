import { expect, test } from "vitest";
import { isOwnBug } from "../errors.ts";
import { TrajectoryRecorder } from "./trajectory-recorder.ts";

const generation = {
  outputIds: [10, 11],
  logprobs: [-1, -1],
  finish: { type: "stop" as const },
  pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" as const }],
  discarded: [],
};

test.each<[string, (recorder: TrajectoryRecorder) => void, string]>([
  ["opens a segment without a prompt", (recorder) => recorder.openSegment([]), "at least one id"],
  [
    "records a turn with a logprob too few",
    (recorder) => {
      recorder.openSegment([1]);
      recorder.appendTurn({ ...generation, logprobs: [-1] });
    },
    "2 sampled ids have 1 logprobs",
  ],
  [
    "drops another id than the last",
    (recorder) => {
      recorder.openSegment([1]);
      recorder.appendTurn(generation);
      recorder.appendDelta({ ids: [2], text: "", closeSynthesised: false, droppedStopId: 10 });
    },
    "only the last sampled id can be dropped",
  ],
])("an episode that %s has a bug of ours", (_, record, message) => {
  let thrown: unknown;
  try {
    record(new TrajectoryRecorder());
  } catch (error) {
    thrown = error;
  }
  expect(isOwnBug(thrown)).toBe(true);
  expect((thrown as Error).message).toContain(message);
});
