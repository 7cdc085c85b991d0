import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { sampleMetadata } from "../run/folder/episode-samples.ts";
import { toSamples } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { exportedReaders } from "../verify/exported/read-exported.ts";
import { exportGroup } from "./export-group.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import type { ExportMember } from "./exporter.ts";
import { sayNote } from "./say-note.ts";

const rewardComponents = { state: { value: 1, weight: 0.75 }, style: { value: 0.5, weight: 0.5 } };

/** Two attempts of two turns: one with the parts of its reward, and one without a reward of its turns. */
function members(): readonly ExportMember[] {
  return [0, 1].map((sampleIndex) => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1, 2]);
    for (const first of [10, 20]) {
      if (first === 20) recorder.appendDelta({ ids: [60], text: "", closeSynthesised: false });
      recorder.appendTurn({
        outputIds: [first, first + 1],
        logprobs: [-0.5, -0.25],
        finish: { type: "stop" },
        pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "3", finish: "stop" }],
        discarded: [],
      });
    }
    const parts =
      sampleIndex === 0
        ? { reward: 1, rewardComponents, turnRewards: [0.25, 0.75] }
        : { reward: 0 };
    const end = { outcome: "completed", stopReason: "finished" } as const;
    const turns = [0, 1].map((turnIndex) => ({ turnIndex, steps: [], text: "" }));
    const row = episodeRow({ taskIndex: 0, sampleIndex });
    const story = { ...row, ...end, ...parts, turns: turns as unknown as typeof row.turns };
    const samples = toSamples(recorder.toSegments(), story, story, (segment) =>
      sampleMetadata(story, segment),
    );
    const { rolloutId } = story;
    return { rolloutId, episode: story, samples, place: { groupIndex: 0, index: sampleIndex } };
  });
}

const wanted: Readonly<Record<ExportTarget, object>> = {
  slime: { metadata: { rewardComponents, turnRewards: [0.25, 0.75] } },
  miles: { metadata: { rewardComponents, turnRewards: [0.25, 0.75] } },
  trl: { env_reward: 1, env_reward_state: 1, env_reward_style: 0.5 },
  verl: { extra_fields: { reward_extra_info: { state: 1, style: 0.5 } } },
  skyrl: { rewards: 1 },
  openrlhf: { extra_logs: { state: 1, style: 0.5 } },
  areal: { rewards: 1 },
  "prime-rl": { reward: 1, sample: { advantages: [0, 0, 0.5, 0.5, 0, 0.5, 0.5] } },
  verifiers: { rewards: { state: { score: 1, weight: 0.75 }, style: { score: 0.5, weight: 0.5 } } },
  "nemo-rl": { reward: 1, reward_components: { state: 0.75, style: 0.25 } },
  tinker: { loss_fn_inputs: { advantages: { data: [0, 0.5, 0.5, 0, 0.5, 0.5] } } },
  art: { metrics: { "rewards/state": 1, "rewards/style": 0.5 } },
};

describe("the parts of a reward", () => {
  test.each(Object.keys(exporters) as ExportTarget[])("go to %s, or are reported", (to) => {
    const { records, notes } = exportGroup(to, members(), { temperature: 1 });
    expect(records[0]).toMatchObject(wanted[to]);
    const dropped = (["components", "turnRewards"] as const).filter(
      (kind) => exporters[to].rules[kind].action === "drop",
    );
    expect(notes).toEqual(
      dropped.map((kind) => ({ rolloutId: "shop/test/0#0", kind, action: "drop" })),
    );
  });

  test("that an export drops are named", () => {
    const { notes } = exportGroup("skyrl", members());
    expect(notes.map((note) => sayNote(note, "skyrl"))).toEqual([
      "Left out the components of the reward of shop/test/0#0: the trainer has no field for components of a reward",
      "Left out the rewards of turns of shop/test/0#0: SkyRL takes one reward for an attempt, unless rewards of turns are requested and the attempt has one row",
    ]);
  });

  test("become rewards of SkyRL's tokens on request", () => {
    const { records, notes } = exportGroup("skyrl", members(), { hasTurnRewards: true });
    expect(records).toMatchObject([
      { rewards: [0, 0.25, 0, 0, 0.75] },
      { rewards: [0, 0, 0, 0, 0] },
    ]);
    expect(notes.map(({ kind }) => kind)).toEqual(["components"]);
    const read = exportedReaders.skyrl({ ...records[0] });
    expect([read.reward, read.found]).toEqual([1, []]);
  });

  test("become advantages of turns with a discount", () => {
    const surroundings = { temperature: 1, turnDiscount: 0.5 };
    const { records, notes } = exportGroup("prime-rl", members(), surroundings);
    // Returns from the first turns: 0.25 + 0.5 · 0.75 = 0.625, and 0. Their mean is 0.3125.
    expect(records).toMatchObject([
      { sample: { advantages: [0, 0, 0.3125, 0.3125, 0, 0.4375, 0.4375] } },
      { sample: { advantages: [0, 0, -0.3125, -0.3125, 0, -0.3125, -0.3125] } },
    ]);
    expect(notes).toEqual([{ rolloutId: "shop/test/0#0", kind: "components", action: "drop" }]);
    expect(exportGroup("tinker", members(), surroundings).records[0]).toMatchObject({
      loss_fn_inputs: { advantages: { data: [0, 0.3125, 0.3125, 0, 0.4375, 0.4375] } },
    });
  });
});
