import { expect, test } from "vitest";
import { createWireIds } from "./wire-ids.ts";

test("each request gets a unique id that ends with the caller's id", () => {
  const [one, other] = [createWireIds(0.5), createWireIds(0.25)];
  expect([one("a"), one("a"), other("a")]).toEqual(["0.5-0~a", "0.5-1~a", "0.25-0~a"]);
});

test("no id is the start of another", () => {
  const engines = [0, 0.5, 0.55, 1e-7].map(createWireIds);
  const ids = engines.flatMap((toWireId) =>
    Array.from({ length: 120 }, (_, index) => toWireId(["", "a", "a;w1;", "1", "~"][index % 5]!)),
  );
  const begun = ids.filter((id, at) =>
    ids.some((other, otherAt) => at !== otherAt && other.startsWith(id)),
  );
  expect(begun).toEqual([]);
});
