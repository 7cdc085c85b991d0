import { describe, expect, test } from "vitest";
import { isModulePath } from "./environment-names.ts";

describe("isModulePath()", () => {
  test.each(["./lamps.js", "lamps.mjs", "../a/b.ts", "/a/b.cjs", "C:\\lamps.js", "a/b"])(
    "takes %s for a module",
    (name) => expect(isModulePath(name)).toBe(true),
  );

  test.each(["storefront", "tau-retail", "js", ""])("takes %j for a name", (name) =>
    expect(isModulePath(name)).toBe(false),
  );
});
