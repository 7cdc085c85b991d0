import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { csvFile } from "./csv-file.ts";

test("each component of the rewards has a column", async () => {
  const part = (value: number) => ({ value, weight: 0.5 });
  const episodes = [
    episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 0.5, rewardComponents: { exact: part(1) } }),
    episodeRow({ taskIndex: 1, sampleIndex: 0 }),
    episodeRow({
      taskIndex: 2,
      sampleIndex: 0,
      reward: 0,
      rewardComponents: { "a, b": part(-1), exact: part(1) },
    }),
  ];
  async function* read() {
    for (const episode of episodes) yield { episode };
  }
  let text = "";
  for await (const bytes of csvFile(read())) text += Buffer.from(bytes).toString();
  const lines = text.trimEnd().split("\r\n");
  expect(lines[0]).toMatch(/,duration_s,reward\.exact,"reward\.a, b"$/);
  expect(lines.slice(1).map((line) => line.split(",").slice(-2))).toEqual([
    ["1", ""],
    ["", ""],
    ["1", "-1"],
  ]);
});
