import { expect, test } from "vitest";
import { expectedName, nearestName } from "./nearest-name.ts";

test.each([
  ["modle", "model"],
  ["max_turns", "max-turns"],
  ["MaxTurns", "max-turns"],
  ["storefornt", "storefront"],
  ["qwne25", "qwen25"],
  ["x", undefined],
  ["", undefined],
  ["something else", undefined],
  ["m".repeat(1_000_000), undefined],
])("nearestName() takes %.20s for %s", (wanted, found) => {
  expect(nearestName(wanted, ["model", "max-turns", "storefront", "qwen25"])).toBe(found);
});

test("expectedName() lists a few names, and asks about a near one", () => {
  expect(expectedName("trian", ["train", "test"])).toBe(
    "did you mean train? (expected one of train, test)",
  );
  expect(expectedName("dev", ["train", "test"])).toBe("expected one of train, test");
  const many = Array.from({ length: 30 }, (_, index) => `setting-${index}`);
  expect(expectedName("seting-7", many)).toBe("did you mean setting-7?");
});
