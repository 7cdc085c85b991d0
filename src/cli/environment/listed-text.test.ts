import { expect, test } from "vitest";
import { listedText } from "./listed-text.ts";

test("an environment is listed for people", () => {
  const listed = {
    environment: "lamps",
    splits: { train: 100_000, test: 1, more: Infinity },
    tools: ["set_lamp", "get_lamp"],
    source: "drawn from a seed",
  };
  expect(listedText(listed)).toBe(
    "lamps\n" +
      "  splits  train (100,000 tasks), test (1 task), more (endless)\n" +
      "  tools   set_lamp, get_lamp\n" +
      "  tasks   drawn from a seed\n",
  );
  expect(listedText({ ...listed, splits: {}, tools: [] })).toContain("  tools   none\n");
});
