import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { namedGroupRules } from "./trainers/common-rules.ts";
import { prepareGroup } from "./prepare-group.ts";

test("prepareGroup() takes an attempt that was interrupted for aborted, not for unscored", () => {
  const episode = episodeRow({
    taskIndex: 0,
    sampleIndex: 0,
    outcome: "aborted",
    stopReason: "interrupted",
  });
  const { rolloutId } = episode;
  const member = { rolloutId, episode, samples: [], place: { groupIndex: 0, index: 0 } };
  expect(prepareGroup([member], { rules: namedGroupRules })).toEqual({
    attempts: [],
    notes: [{ rolloutId, kind: "aborted", action: "leave-out" }],
  });
});
