import { expect, test } from "vitest";
import { writePlainJson } from "./plain-text.ts";

test("writePlainJson() names the beginning of a circle", () => {
  const shelf: { next?: unknown } = {};
  shelf.next = shelf;
  const beginning = "next.".repeat(12);
  expect(() => writePlainJson(shelf)).toThrow(
    `its ${beginning}… is nested too deeply, or contains itself`,
  );
});
