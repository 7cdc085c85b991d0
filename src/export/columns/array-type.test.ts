import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { arrayTypes } from "./array-type.ts";

test("the Python package reads each type of array that an export writes", async () => {
  const reader = new URL("../../../integrations/python/turnwright/columns.py", import.meta.url);
  const [, listed] = /^ARRAY_TYPES = \((.*)\)$/m.exec(await readFile(reader, "utf8"))!;
  expect(listed).toBe(arrayTypes.map((type) => `"${type}"`).join(", "));
});
